import type { CallOptions, Connection, CreateOptions } from '../connection/connection.ts'
import type { CreateKeyBody, Key, NewKey, RotateKeyBody, UpdateKeyBody } from '../types.ts'

export type Keys = {
  list(options?: CallOptions): Promise<Key[]>
  /** The text of the key is in this answer and in no other. */
  create(key: CreateKeyBody, options?: CreateOptions): Promise<NewKey>
  update(keyId: string, changes: UpdateKeyBody, options?: CallOptions): Promise<Key>
  /** Gives the key a new text; the old one goes on for a while. */
  rotate(keyId: string, rotation?: RotateKeyBody, options?: CreateOptions): Promise<NewKey>
  /** From then on nobody is let in by it. */
  revoke(keyId: string, options?: CallOptions): Promise<void>
}

export function keysRoom({ json }: Connection): Keys {
  const given = async <T>(answer: Promise<{ data: T }>) => (await answer).data

  return {
    async list(options) {
      const request = { method: 'GET', path: '/v1/keys', repeatable: 'yes' } as const
      return (await json<{ data: { keys: Key[] } }>(request, options)).data.keys
    },
    create: (key, options) =>
      given(json({ method: 'POST', path: '/v1/keys', body: key, repeatable: 'key' }, options)),
    update: (keyId, changes, options) =>
      given(
        json({ method: 'PATCH', path: pathOf(keyId), body: changes, repeatable: 'yes' }, options),
      ),
    rotate: (keyId, rotation = {}, options) =>
      given(
        json(
          {
            method: 'POST',
            path: `${pathOf(keyId)}/rotate`,
            body: rotation,
            repeatable: 'key',
          },
          options,
        ),
      ),
    revoke: (keyId, options) =>
      json({ method: 'DELETE', path: pathOf(keyId), repeatable: 'yes' }, options),
  }
}

const pathOf = (keyId: string) => `/v1/keys/${encodeURIComponent(keyId)}`
