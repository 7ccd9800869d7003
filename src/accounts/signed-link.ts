import { SECOND } from '../platform/clock.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import { hashEquals } from './key.ts'
import type { ApiKey } from './key-store.ts'

// A signed link is a request with the rights of a key, but without its secret. The signature covers
// the path, the whole query and the current secret of the key.

type Signer = { readonly secretBox: Pick<SecretBox, 'sign'> }

type LinkKey = Pick<ApiKey, 'id' | 'hint'>

type Link = {
  readonly key: LinkKey
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

/** Whether the path and query of a request are a link that this key has signed. */
export function isSignedLink(signer: Signer, key: LinkKey, url: string): boolean {
  // All that follows is the signature: no parameter can be added behind it.
  const end = url.indexOf(SIGNATURE)
  const [target, signature] = [url.slice(0, end), url.slice(end + SIGNATURE.length)]
  return hashEquals(signature, sign(signer, key, target))
}

const SIGNATURE = '&signature='

/** The hint is part of the newest secret, so that a rotation of the key ends its links. */
const sign = ({ secretBox }: Signer, { id, hint }: LinkKey, target: string) =>
  secretBox.sign(`link 1 ${id} ${hint} ${target}`)
