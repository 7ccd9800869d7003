import { createReadStream, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { Decrypter, Encrypter } from 'age-encryption'
import { EvError, errorMessage } from '../platform/error.ts'

/** How a backup is encrypted: with a passphrase, or for the holders of age identities. */
export type Encryption =
  | { readonly passphrase: string }
  /** Public keys, such as `age1…`. At least one. */
  | { readonly recipients: readonly string[] }

/** What decrypts a backup: a passphrase, or the text of age identity files (`AGE-SECRET-KEY-1…`). */
export type DecryptionKey = { readonly passphrase: string } | { readonly identities: string }

/** The first bytes of an age file (https://age-encryption.org/v1). */
const MAGIC = 'age-encryption.org/v1\n'
const SCRYPT = `${MAGIC}-> scrypt `

/** Returns how a file is encrypted; null if it is not an age file. */
export async function encryptionOf(file: string): Promise<'passphrase' | 'recipients' | null> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(
      Buffer.alloc(SCRYPT.length),
      0,
      SCRYPT.length,
      0,
    )
    const start = buffer.toString('latin1', 0, bytesRead)
    if (!start.startsWith(MAGIC)) return null
    return start === SCRYPT ? 'passphrase' : 'recipients'
  } finally {
    await handle.close()
  }
}

/** Encrypts a file into a new one that only its owner can read. */
export async function encryptFile(
  source: string,
  target: string,
  encryption: Encryption,
  signal: AbortSignal,
): Promise<void> {
  const encrypter = createEncrypter(encryption)
  const encrypted = await encrypter.encrypt(streamOf(source))
  await writeStream(encrypted, target, signal)
}

/** Creates an encrypter. Throws EvError('usage') for an invalid recipient. */
function createEncrypter(encryption: Encryption): Encrypter {
  const encrypter = new Encrypter()
  if ('passphrase' in encryption) {
    encrypter.setPassphrase(encryption.passphrase)
    return encrypter
  }
  for (const recipient of encryption.recipients) {
    try {
      encrypter.addRecipient(recipient)
    } catch {
      throw new EvError(
        'usage',
        `--recipient takes a public key of age, such as age1…, which "age-keygen -y KEYFILE" prints.`,
      )
    }
  }
  return encrypter
}

/** Throws EvError('usage') if the recipients are invalid. */
export const checkEncryption = (encryption: Encryption): void => void createEncrypter(encryption)

/**
 * Decrypts an age file into a new one that only its owner can read. age authenticates each chunk
 * with its position, and the last one as such: chunks that are missing, changed or moved are
 * detected. Throws EvError('usage') for a wrong key and EvError('bad_input') for a damaged file.
 */
export async function decryptFile(
  source: string,
  target: string,
  key: DecryptionKey,
  signal: AbortSignal,
): Promise<void> {
  const decrypted = await openDecrypted(source, key)
  try {
    await writeStream(decrypted, target, signal)
  } catch (error) {
    signal.throwIfAborted()
    // The system has codes for a full disk and the like; age has none.
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error
    throw damaged(source, error)
  }
}

async function openDecrypted(source: string, key: DecryptionKey) {
  const decrypter = createDecrypter(key)
  try {
    return await decrypter.decrypt(streamOf(source))
  } catch (error) {
    if (/no identity matched/.test(errorMessage(error))) throw wrongKey(source, key)
    throw damaged(source, error)
  }
}

function createDecrypter(key: DecryptionKey): Decrypter {
  const decrypter = new Decrypter()
  if ('passphrase' in key) {
    decrypter.addPassphrase(key.passphrase)
    return decrypter
  }
  const lines = key.identities.split('\n').map(line => line.trim())
  const identities = lines.filter(line => line !== '' && !line.startsWith('#'))
  try {
    for (const identity of identities) decrypter.addIdentity(identity)
  } catch {
    throw badIdentity()
  }
  if (identities.length === 0) throw badIdentity()
  return decrypter
}

const badIdentity = () =>
  new EvError(
    'usage',
    'The file of --identity has a line that is not an identity of age. It takes lines that start with AGE-SECRET-KEY-1, as "age-keygen" writes them.',
  )

const wrongKey = (file: string, key: DecryptionKey) =>
  new EvError(
    'usage',
    'passphrase' in key
      ? `The passphrase does not decrypt ${file}. Use the passphrase that was set when the backup was made.`
      : `No identity in the file of --identity decrypts ${file}. Use the one whose public key was the --recipient of the backup.`,
  )

const damaged = (file: string, cause: unknown) =>
  new EvError(
    'bad_input',
    `${file} is damaged, because a part is missing or was changed: ${errorMessage(cause)}. Use another backup.`,
    { cause },
  )

const streamOf = (file: string) =>
  Readable.toWeb(createReadStream(file)) as unknown as globalThis.ReadableStream<Uint8Array>

async function writeStream(
  stream: globalThis.ReadableStream<Uint8Array>,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  const from = Readable.fromWeb(stream as unknown as ReadableStream)
  await pipeline(from, createWriteStream(target, { flags: 'wx', mode: 0o600 }), { signal })
}
