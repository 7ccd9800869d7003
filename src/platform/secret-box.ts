import { createCipheriv, createDecipheriv, createHash, createSecretKey } from 'node:crypto'
import type { Random } from './random.ts'

/** Encrypts values that are stored in the database and read back, such as signing secrets. */
export interface SecretBox {
  encrypt(text: string): string
  /** Throws if the text was encrypted with another key, or altered. */
  decrypt(encrypted: string): string
}

/** AES-256-GCM with a key derived from `secret`, which should have 256 bits of entropy. */
export function createSecretBox(secret: string, random: Random): SecretBox {
  // Passing raw bytes would create a key object per call, which costs more than the encryption.
  const key = createSecretKey(createHash('sha256').update(`ev seal 1 ${secret}`).digest())
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
  }
}

/** 129 bits of entropy, more than the 96 of an IV. */
const TOKEN_LENGTH = 25
