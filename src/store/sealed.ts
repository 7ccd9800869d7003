import type { Seal } from '../base/seal.ts'
import type { Database } from './database.ts'

/** Whether a seal opens what was sealed before, as far as the newest of each kind tell. */
export async function opensSealed(database: Database, seal: Seal): Promise<boolean> {
  return (await sealedSamples(database)).every(text => opens(seal, text))
}

function opens(seal: Seal, text: string): boolean {
  try {
    seal.open(text)
    return true
  } catch {
    return false
  }
}

async function sealedSamples({ db }: Database): Promise<string[]> {
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
