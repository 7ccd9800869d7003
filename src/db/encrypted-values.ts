import type { SecretBox } from '../platform/secret-box.ts'
import type { Database } from './database.ts'

/** Whether a secret box can decrypt the stored values. Checks the newest value of each kind. */
export async function canDecrypt(database: Database, secretBox: SecretBox): Promise<boolean> {
  return (await encryptedSamples(database)).every(text => isDecryptable(secretBox, text))
}

function isDecryptable(secretBox: SecretBox, text: string): boolean {
  try {
    secretBox.decrypt(text)
    return true
  } catch {
    return false
  }
}

async function encryptedSamples({ db }: Database): Promise<string[]> {
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
  const source = await db
    .selectFrom('feedback_source')
    .select('secret')
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  return [webhook?.secret, replay?.answer, source?.secret].filter(text => text !== undefined)
}
