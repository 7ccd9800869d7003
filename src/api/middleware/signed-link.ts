import { timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { type ApiKey, type FoundKey, findKeyById } from '../../accounts/key-store.ts'
import { SECOND } from '../../platform/clock.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'

// A signed link is a request with the rights of a key, but without its secret. The signature covers
// the path, the whole query and the current secret of the key.

type Signer = { readonly secretBox: Pick<SecretBox, 'sign'> }

type Link = {
  readonly key: ApiKey
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** Epoch ms; rounded down to seconds. */
  readonly expiresAt: number
}

/** Returns the path and query of a signed link. */
export function signLink(signer: Signer, { key, path, query, expiresAt }: Link): string {
  const expires = String(Math.floor(expiresAt / SECOND))
  const target = `${path}?${new URLSearchParams({ ...query, key_id: key.id, expires })}`
  return `${target}${SIGNATURE}${sign(signer, key, target)}`
}

/**
 * Authenticates a signed link. The key is read at each request: a link ends when its key is revoked,
 * rotated or expired. Throws ApiError.
 */
export async function authenticateLink(c: Context<Env>, service: Service): Promise<FoundKey> {
  const { pathname, search } = new URL(c.req.url)
  const url = `${pathname}${search}`
  // All that follows is the signature: no parameter can be added behind it.
  const end = url.indexOf(SIGNATURE)
  const [target, signature] = [url.slice(0, end), url.slice(end + SIGNATURE.length)]
  const found = await findKeyById(service.database, c.req.query('key_id') ?? '')
  if (found === null || !isEqual(signature, sign(service, found.key, target))) throw invalidLink()
  const now = service.clock.now()
  const expiresAt = Number(c.req.query('expires')) * SECOND
  if (!(now < expiresAt) || (found.key.expiresAt !== null && found.key.expiresAt <= now)) {
    throw new ApiError('key_expired', 'This link has expired. Create a new one.')
  }
  return found
}

const SIGNATURE = '&signature='

/** The hint is part of the newest secret, so that a rotation of the key ends its links. */
const sign = ({ secretBox }: Signer, { id, hint }: ApiKey, target: string) =>
  secretBox.sign(`link 1 ${id} ${hint} ${target}`)

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const invalidLink = () =>
  new ApiError(
    'authentication_error',
    'This link is not valid: it was changed, or its API key was rotated or revoked. Create a new one.',
  )
