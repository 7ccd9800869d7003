import type { Database } from './database.ts'

/** Some of what was sealed: the newest of each kind, to see whether it can still be opened. */
export async function sealedSamples({ db }: Database): Promise<string[]> {
  const webhook = await db
    .selectFrom('webhook')
    .select('secret')
    .where('deleted_at', 'is', null)
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  const replay = await db
    .selectFrom('replay')
    .select('answer')
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  return [webhook?.secret, replay?.answer].filter(text => text !== undefined)
}
