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
import { dataOf } from './data.ts'

export type Keys = {
  list(options?: CallOptions): Promise<Key[]>
  get(keyId: string, options?: CallOptions): Promise<Key>
  /** The text of the key is in this answer and in no other. */
  create(key: NewKey, options?: CreateOptions): Promise<CreatedKey['data']>
  /** What is left out stays as it is. */
  update(keyId: string, changes: KeyPatch, options?: CallOptions): Promise<Key>
  /** Gives the key another text; the one that it has goes on for a while. */
  rotate(
    keyId: string,
    rotation?: KeyRotation,
    options?: CreateOptions,
  ): Promise<RotatedKey['data']>
  /** From then on it opens nothing. */
  delete(keyId: string, options?: DeleteKeyOptions): Promise<void>
}

export type DeleteKeyOptions = CallOptions & {
  /** Deletes the last key of the account too, which is refused with `last_key` otherwise. */
  readonly force?: boolean | undefined
}

export function keysRoom({ json }: Connection): Keys {
  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/keys' } as const
      return (await dataOf(json<KeyList>(request, options))).keys
    },
    get: (keyId, options) =>
      dataOf(json<KeyAnswer>({ method: 'GET', path: pathOf(keyId) }, options)),
    create: (body, options) =>
      dataOf(json<CreatedKey>({ method: 'POST', path: '/v1/keys', body, creates: true }, options)),
    update: (keyId, body, options) =>
      dataOf(json<KeyAnswer>({ method: 'PATCH', path: pathOf(keyId), body }, options)),
    rotate: (keyId, body = {}, options) =>
      dataOf(
        json<RotatedKey>(
          { method: 'POST', path: `${pathOf(keyId)}/rotate`, body, creates: true },
          options,
        ),
      ),
    delete: (keyId, { force, ...options } = {}) =>
      json({ method: 'DELETE', path: pathOf(keyId), query: { force } }, options),
  }
}

const pathOf = (keyId: string) => `/v1/keys/${encodeURIComponent(keyId)}`
