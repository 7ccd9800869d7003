import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
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
import { createRequests } from './requests.ts'

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

export function createKeysResource(connection: Connection): Keys {
  const requests = createRequests(connection)
  return {
    list: async options => (await requests.get<KeyList>('/v1/keys', options)).keys,
    get: (keyId, options) => requests.get<KeyAnswer>(keyPath(keyId), options),
    create: (key, options) => requests.create<CreatedKey>('/v1/keys', key, options),
    update: (keyId, changes, options) =>
      requests.update<KeyAnswer>(keyPath(keyId), changes, options),
    rotate: (keyId, rotation = {}, options) =>
      requests.create<RotatedKey>(`${keyPath(keyId)}/rotate`, rotation, options),
    delete: (keyId, { force, ...options } = {}) =>
      requests.delete(keyPath(keyId), options, { force }),
  }
}

const keyPath = (keyId: string) => `/v1/keys/${encodeId(keyId)}`
