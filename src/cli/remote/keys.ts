import type { EvClient } from '../../client/client.ts'
import type { Key, NewKey } from '../../client/types.ts'
import { SECOND } from '../../platform/clock.ts'
import { selectAccount } from '../select-account.ts'
import { listAll, ownAccount } from '../service.ts'

/** The keys that the commands manage: of a database, or of a service. */
export type KeysBackend = {
  /** Lists the keys of an account, by ID or name, or of all. */
  list(account: string | undefined): Promise<readonly OwnedKey[]>
  get(id: string): Promise<Key>
  create(input: NewKey, account: string | undefined): Promise<KeyWithOwner>
  rotate(
    id: string,
    graceMs: number,
  ): Promise<KeyWithOwner & { readonly previousExpiresAt: number }>
  revoke(id: string, options: { readonly isForced: boolean }): Promise<void>
}

export type OwnedKey = Key & { readonly account_id: string }

export type KeyWithOwner = {
  /** With its secret. */
  readonly key: Key & { readonly key: string }
  readonly account: { readonly id: string; readonly name: string }
}

/** Manages the keys of the account of a key; the key of an admin creates keys of any account. */
export function createRemoteKeys(client: EvClient): KeysBackend {
  const { keys, accounts } = client
  return {
    async list(account) {
      const { id } = await ownAccount(client, account)
      return (await keys.list()).map(key => ({ ...key, account_id: id }))
    },
    get: id => keys.get(id),
    async create(key, account) {
      const own = await client.account.get()
      if (account === undefined || account === own.id || account === own.name) {
        return { key: await keys.create(key), account: own }
      }
      const owner = selectAccount(await listAll(accounts.list({ limit: 100 })), account)
      return { key: await accounts.createKey(owner.id, key), account: owner }
    },
    async rotate(id, graceMs) {
      const account = await client.account.get()
      const rotated = await keys.rotate(id, { grace_period_seconds: graceMs / SECOND })
      const { previous_key_expires_at, ...key } = rotated
      return { key, account, previousExpiresAt: Date.parse(previous_key_expires_at) }
    },
    revoke: (id, { isForced }) => keys.delete(id, { force: isForced }),
  }
}
