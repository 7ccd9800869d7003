import { createCipheriv, createDecipheriv, createHash, createSecretKey } from 'node:crypto'
import type { Random } from './random.ts'

/** Seals texts that must be read again, such as signing secrets, for the time that they lie in the database. */
export interface SecretBox {
  encrypt(text: string): string
  /** Throws where it was sealed with another key, or changed. */
  decrypt(encrypted: string): string
}

/** AES-256-GCM with a key made from `secret`, which should have 32 bytes of chance. */
export function createSecretBox(secret: string, random: Random): SecretBox {
  // Handed over as bytes it would be made anew each time, which costs more than the sealing.
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

/** 129 bits of chance, more than the 96 of an IV. */
const TOKEN_LENGTH = 25
