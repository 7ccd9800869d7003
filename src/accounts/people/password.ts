import { type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import type { Random } from '../../platform/random.ts'
import { isCommonPassword } from './common-passwords.ts'

/** Hashes passwords and verifies them, one at a time. */
export interface PasswordHasher {
  /** Returns the hash of a password in the PHC string format. */
  hash(password: string): Promise<string>
  /** Whether a password has this hash. Without a hash it takes as long, and the result is false. */
  verify(password: string, stored: string | null): Promise<boolean>
  /** Whether so many passwords wait that another one is refused. */
  isOverloaded(): boolean
}

/** Parameters of scrypt: N = 2^`logN`, r and p of RFC 7914. */
type ScryptCost = { readonly logN: number; readonly r: number; readonly p: number }

/** 32 MiB: one of the equivalent choices of the OWASP Password Storage Cheat Sheet. */
const SCRYPT_COST: ScryptCost = { logN: 15, r: 8, p: 3 }

/**
 * Hashes at a time: each takes 32 MiB and one of the four threads of libuv, which files and DNS
 * share.
 */
const CONCURRENT_MAX = 1
/** About ten seconds of work. Browsers and users do not wait longer. */
const WAITING_MAX = 32

export function createPasswordHasher(random: Random, cost = SCRYPT_COST): PasswordHasher {
  const limit = pLimit(CONCURRENT_MAX)
  const derive = (password: string, salt: Buffer, given: ScryptCost) =>
    limit(() => deriveKey(password.normalize('NFKC'), salt, HASH_BYTES, nodeOptions(given)))
  return {
    isOverloaded: () => limit.pendingCount >= WAITING_MAX,
    async hash(password) {
      const salt = Buffer.from(random.token(SALT_LENGTH))
      const { logN, r, p } = cost
      const parameters = `ln=${logN},r=${r},p=${p}`
      return `$scrypt$${parameters}$${encode(salt)}$${encode(await derive(password, salt, cost))}`
    },
    async verify(password, stored) {
      const parsed = stored === null ? null : parseHash(stored)
      if (parsed === null) {
        await derive(password, NO_SALT, cost)
        return false
      }
      return timingSafeEqual(await derive(password, parsed.salt, parsed.cost), parsed.hash)
    },
  }
}

const deriveKey = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)

const nodeOptions = ({ logN, r, p }: ScryptCost): ScryptOptions => ({
  N: 2 ** logN,
  r,
  p,
  // Node's default limit is exactly the memory of N and r, without that of p.
  maxmem: 2 * 128 * 2 ** logN * r,
})

const HASH_BYTES = 32
/** 129 bits of entropy. */
const SALT_LENGTH = 25
const NO_SALT = Buffer.alloc(SALT_LENGTH)

/** Base64 without padding, as in the PHC string format. */
const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

function parseHash(stored: string) {
  const [, logN, r, p, salt = '', hash = ''] =
    /^\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/.exec(stored) ?? []
  if (logN === undefined) return null
  return {
    cost: { logN: Number(logN), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  }
}

/** NIST SP 800-63B §3.1.1.2 asks for 8 with a second factor and 15 without; ev allows both. */
export const PASSWORD_LENGTH_MIN = 12
/** Long passphrases fit, and the form stays short. */
const PASSWORD_LENGTH_MAX = 200

/** Returns why a new password is refused, as a sentence; null if it is accepted. */
export async function findPasswordFault(password: string, email: string): Promise<string | null> {
  const { length } = password
  if (length < PASSWORD_LENGTH_MIN || length > PASSWORD_LENGTH_MAX) {
    return `The password has ${length} characters. Use ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX}.`
  }
  if (new Set(password).size < DISTINCT_MIN) {
    return 'The password repeats a few characters. Use several words, or a password manager.'
  }
  const [local = ''] = email.split('@')
  if (password.toLowerCase().includes(email) || password.toLowerCase() === local) {
    return 'The password contains your email address. Choose another one.'
  }
  return (await isCommonPassword(password)) ? COMMON : null
}

const DISTINCT_MIN = 5
const COMMON =
  'The password is on a list of passwords that many people use, which attackers try first. Use several words, or a password manager.'
