import { createHmac } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { EvError, errorMessage } from '../platform/error.ts'
import type { Random } from '../platform/random.ts'

export type SecretLocation = {
  /** The secret itself, where it was given. */
  readonly secret: string | null
  /** The file that somebody keeps it in. */
  readonly secretFile: string | null
  readonly dataDir: string
}

/** The secret that seals what must be read again; made in the data directory where nobody gave one. */
export function readSecret(
  { secret, secretFile, dataDir }: SecretLocation,
  random: Random,
): string {
  if (secret !== null) return secret
  const file = secretFile ?? ownFile(dataDir)
  try {
    return checked(readFileSync(file, 'utf8').trim(), file)
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    if (isMissing && secretFile === null) return makeSecret(file, random)
    if (error instanceof EvError) throw error
    throw unreadable(file, error)
  }
}

/** Whether `readSecret` would make one. */
export const needsSecret = ({ secret, secretFile, dataDir }: SecretLocation): boolean =>
  secret === null && secretFile === null && !existsSync(ownFile(dataDir))

/** What tells whether two secrets are the same, and nothing else about them. */
export const fingerprint = (secret: string): string =>
  createHmac('sha256', secret).update('ev secret mark 1').digest('hex')

const ownFile = (dataDir: string) => join(dataDir, 'secret')

/** 258 bits of chance. */
const LENGTH = 50
/** Shorter ones can be guessed. */
const LENGTH_MIN = 16

function checked(secret: string, file: string): string {
  if (secret.length >= LENGTH_MIN) return secret
  throw new EvError(
    'bad_config',
    `The secret in ${file} is shorter than ${LENGTH_MIN} characters. Put the one back that was there before; what it sealed cannot be read with another.`,
  )
}

/** For nobody else to read, and on the disk before anything is sealed with it. */
function makeSecret(file: string, random: Random): string {
  const secret = random.token(LENGTH)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
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
  return secret
}

const unreadable = (file: string, cause: unknown) =>
  new EvError(
    'bad_config',
    `The secret in ${file} cannot be used: ${errorMessage(cause)}. Correct its rights, or name another with EV_SECRET_FILE.`,
    { cause },
  )
