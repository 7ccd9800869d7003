import { createHmac } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createDirectory } from '../platform/directory.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import type { Random } from '../platform/random.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { Database } from './database.ts'

export type SecretLocation = {
  /** The secret itself; null if it is not configured. */
  readonly secret: string | null
  /** The configured file of the secret; null if there is none. */
  readonly secretFile: string | null
  readonly dataDir: string
}

/**
 * Returns the secret that encrypts values in the database. Generates one in the data directory if
 * neither the secret nor its file is configured.
 */
export function readSecret(location: SecretLocation, random: Random): string {
  const secret = findSecret(location)
  if (secret !== null) return secret
  const generated = random.token(LENGTH)
  writeSecret(secretPath(location), generated)
  return generated
}

/** Returns the secret; null if none is configured and none has been generated yet. */
export function findSecret(location: SecretLocation): string | null {
  if (location.secret !== null) return location.secret
  const file = secretPath(location)
  try {
    return validated(readFileSync(file, 'utf8').trim(), file)
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    if (isMissing && location.secretFile === null) return null
    if (error instanceof EvError) throw error
    throw unreadable(file, error)
  }
}

/** Returns the file that has the secret unless `EV_SECRET` is set. */
export const secretPath = ({ secretFile, dataDir }: Omit<SecretLocation, 'secret'>): string =>
  secretFile ?? join(dataDir, 'secret')

/** Whether `readSecret` would generate a secret. */
export const needsSecret = (location: SecretLocation): boolean =>
  location.secret === null && location.secretFile === null && !existsSync(secretPath(location))

/** Returns a one-way fingerprint of a secret, to compare secrets without storing them. */
export const fingerprint = (secret: string): string =>
  createHmac('sha256', secret).update('ev secret mark 1').digest('hex')

/** 258 bits of entropy. */
const LENGTH = 50
/** Shorter secrets can be guessed. */
const LENGTH_MIN = 16

function validated(secret: string, file: string): string {
  if (secret.length >= LENGTH_MIN) return secret
  throw new EvError(
    'bad_config',
    `The secret in ${file} is shorter than ${LENGTH_MIN} characters. Restore the previous secret; data encrypted with it cannot be decrypted with another one.`,
  )
}

/**
 * Writes a secret to a new file: readable by the owner only, and flushed to disk before it encrypts
 * anything. Throws EvError('bad_config').
 */
export function writeSecret(file: string, secret: string): void {
  try {
    createDirectory(dirname(file))
    const descriptor = openSync(file, 'wx', 0o600)
    try {
      writeSync(descriptor, `${secret}\n`)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw unreadable(file, error)
  }
}

const unreadable = (file: string, cause: unknown) =>
  new EvError(
    'bad_config',
    `The secret in ${file} cannot be used: ${errorMessage(cause)}. Correct its permissions, or set another file with EV_SECRET_FILE.`,
    { cause },
  )

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
