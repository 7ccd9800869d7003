import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import type {
  CreatedKey,
  Key,
  KeyAnswer,
  KeyList,
  KeyPatch,
  KeyRotation,
  NewKey,
  RotatedKey,
} from '../types.ts'
import { unwrapData } from './pagination.ts'

export type Keys = {
  list(options?: CallOptions): Promise<Key[]>
  get(keyId: string, options?: CallOptions): Promise<Key>
  /** Creates a key. Only this response contains its secret. */
  create(key: NewKey, options?: CreateOptions): Promise<CreatedKey['data']>
  /** Updates a key; omitted fields keep their value. */
  update(keyId: string, changes: KeyPatch, options?: CallOptions): Promise<Key>
  /** Issues a new secret; the old one stays valid during the grace period. */
  rotate(
    keyId: string,
    rotation?: KeyRotation,
    options?: CreateOptions,
  ): Promise<RotatedKey['data']>
  /** Revokes a key. */
  delete(keyId: string, options?: DeleteKeyOptions): Promise<void>
}

type DeleteKeyOptions = CallOptions & {
  /** Also deletes the last key of the account, which otherwise fails with `last_key`. */
  readonly force?: boolean | undefined
}

export function createKeysResource({ json }: Connection): Keys {
  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/keys' } as const
      return (await unwrapData(json<KeyList>(request, options))).keys
    },
    get: (keyId, options) =>
      unwrapData(json<KeyAnswer>({ method: 'GET', path: keyPath(keyId) }, options)),
    create: (body, options) =>
      unwrapData(
        json<CreatedKey>({ method: 'POST', path: '/v1/keys', body, creates: true }, options),
      ),
    update: (keyId, body, options) =>
      unwrapData(json<KeyAnswer>({ method: 'PATCH', path: keyPath(keyId), body }, options)),
    rotate: (keyId, body = {}, options) =>
      unwrapData(
        json<RotatedKey>(
          { method: 'POST', path: `${keyPath(keyId)}/rotate`, body, creates: true },
          options,
        ),
      ),
    delete: (keyId, { force, ...options } = {}) =>
      json({ method: 'DELETE', path: keyPath(keyId), query: { force } }, options),
  }
}

const keyPath = (keyId: string) => `/v1/keys/${encodeURIComponent(keyId)}`
