import type { Database } from '../../db/database.ts'
import { accountIn } from '../account-store.ts'
import { type ApiKey, type FoundKey, findKeyById } from '../key-store.ts'
import { findPerson, isPersonId, type Person } from './person-store.ts'
import { roleRights } from './role.ts'

/** A key, or a person with the rights of the role in the form of a key. */
export type Principal = FoundKey & { readonly person: Person | null }

/**
 * Finds the key or the person of a dashboard session or a signed link. Returns null if there is
 * none, the key is revoked or the person was removed.
 */
export async function findPrincipal(database: Database, id: string): Promise<Principal | null> {
  if (!isPersonId(id)) {
    const found = await findKeyById(database, id)
    return found && { ...found, person: null }
  }
  const person = await findPerson(database.reader, null, id)
  const account = person && (await accountIn(database.reader, person.account_id))
  return person && account && { key: toKey(person), account, secretExpiresAt: null, person }
}

const toKey = (person: Person): ApiKey => ({
  ...roleRights(person.role),
  id: person.id,
  accountId: person.account_id,
  name: person.name,
  prefix: '',
  hint: '',
  createdAt: person.created_at,
  isTest: false,
  lastUsedAt: null,
  revokedAt: null,
})
