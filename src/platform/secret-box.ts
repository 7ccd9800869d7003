import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
} from 'node:crypto'
import type { Random } from './random.ts'

/** Encrypts values that are stored in the database and read back, and signs texts. */
export interface SecretBox {
  encrypt(text: string): string
  /** Throws if the text was encrypted with another key, or altered. */
  decrypt(encrypted: string): string
  /** Returns the HMAC-SHA256 of a text in hexadecimal, with a key of its own. */
  sign(text: string): string
}

/** AES-256-GCM with a key derived from `secret`, which should have 256 bits of entropy. */
export function createSecretBox(secret: string, random: Random): SecretBox {
  // Passing raw bytes would create a key object per call, which costs more than the encryption.
  const deriveKey = (label: string) =>
    createSecretKey(createHash('sha256').update(`${label} ${secret}`).digest())
  const key = deriveKey('ev seal 1')
  const signingKey = deriveKey('ev sign 1')
  return {
    encrypt(text) {
      const iv = createHash('sha256').update(random.token(TOKEN_LENGTH)).digest().subarray(0, 12)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `1.${Buffer.concat([iv, cipher.getAuthTag(), encrypted]).toString('base64url')}`
    },
    decrypt(encrypted) {
      const bytes = Buffer.from(encrypted.replace(/^1\./, ''), 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
      decipher.setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
    },
    sign: text => createHmac('sha256', signingKey).update(text).digest('hex'),
  }
}

/** 129 bits of entropy, more than the 96 of an IV. */
const TOKEN_LENGTH = 25
