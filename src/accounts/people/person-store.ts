import { countRows } from '../../db/count-rows.ts'
import type { Trx } from '../../db/database.ts'
import type { Reader } from '../../db/reader.ts'
import { isoTime } from '../../platform/format.ts'
import type { PersonTable } from '../tables.ts'

export type Person = PersonTable

/** Whether an ID is that of a person; sessions, jobs and usage have IDs of keys or of people. */
export const isPersonId = (id: string): boolean => id.startsWith('per_')

/** Whether the person has accepted an invitation. */
export const hasJoined = ({ password, oidc_subject }: Person): boolean =>
  password !== null || oidc_subject !== null

export async function insertPerson(trx: Trx, person: Person): Promise<void> {
  await trx.insertInto('person').values(person).execute()
}

/** Lists the people of an account, by name. */
export function listPeople(db: Reader, accountId: string): Promise<Person[]> {
  return db
    .selectFrom('person')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('name')
    .orderBy('id')
    .execute()
}

/** Whether an account has people. */
export async function arePeopleInvited(db: Reader): Promise<boolean> {
  return (await db.selectFrom('person').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** Finds a person of an account; `accountId` null finds one of any account. */
export async function findPerson(
  db: Reader,
  accountId: string | null,
  id: string,
): Promise<Person | null> {
  const query = db
    .selectFrom('person')
    .selectAll()
    .where('id', '=', id)
    .$if(accountId !== null, one => one.where('account_id', '=', accountId))
  return (await query.executeTakeFirst()) ?? null
}

export async function findPersonByInvitation(
  db: Reader,
  invitationHash: string,
): Promise<Person | null> {
  const query = db.selectFrom('person').selectAll().where('invitation_hash', '=', invitationHash)
  return (await query.executeTakeFirst()) ?? null
}

/** A person, with the name of the account. */
export type PersonOfAccount = Person & { readonly account_name: string }

/** Selects people with the names of their accounts, in the order of the accounts. */
const peopleOfAccounts = (db: Reader) =>
  db
    .selectFrom('person')
    .innerJoin('account', 'account.id', 'person.account_id')
    .selectAll('person')
    .select('account.name as account_name')
    .orderBy('account.created_at')
    .orderBy('account.id')

/**
 * Lists the people with an address, one for each account that invited it. `account` is the name or
 * the ID of one account; null for all.
 */
export function listPeopleByEmail(
  db: Reader,
  email: string,
  account: string | null,
): Promise<PersonOfAccount[]> {
  return peopleOfAccounts(db)
    .where('person.email', '=', email)
    .$if(account !== null, query =>
      query.where(eb => eb.or([eb('account.id', '=', account), eb('account.name', '=', account)])),
    )
    .execute()
}

/** Lists the people of an identity at a provider, at most one for each account. */
export function listPeopleByIdentity(
  db: Reader,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): Promise<PersonOfAccount[]> {
  return peopleOfAccounts(db)
    .where('person.oidc_issuer', '=', issuer)
    .where('person.oidc_subject', '=', subject)
    .execute()
}

type PersonPatch = Partial<Omit<Person, 'id' | 'account_id' | 'created_at'>>

/** Updates the fields in `patch`. Returns null if there is no such person. */
export async function updatePerson(
  trx: Trx,
  id: string,
  patch: PersonPatch,
): Promise<Person | null> {
  const query = trx.updateTable('person').set(patch).where('id', '=', id).returningAll()
  return (await query.executeTakeFirst()) ?? null
}

/** Deletes a person with the recovery codes. */
export async function deletePerson(trx: Trx, id: string): Promise<void> {
  await deleteRecoveryCodes(trx, id)
  await trx.deleteFrom('person').where('id', '=', id).execute()
}

/**
 * Records the time step of a code. Returns false if this or a later step was used before: each code
 * is accepted once.
 */
export async function useTotpStep(trx: Trx, id: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('person')
    .set({ totp_step: step })
    .where('id', '=', id)
    .where(eb => eb.or([eb('totp_step', 'is', null), eb('totp_step', '<', step)]))
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** Replaces the recovery codes of a person. */
export async function insertRecoveryCodes(
  trx: Trx,
  personId: string,
  hashes: readonly string[],
): Promise<void> {
  await deleteRecoveryCodes(trx, personId)
  const rows = hashes.map(hash => ({ person_id: personId, hash }))
  await trx.insertInto('recovery_code').values(rows).execute()
}

/** Deletes a recovery code. Returns false if it is wrong or was used before. */
export async function useRecoveryCode(trx: Trx, personId: string, hash: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('recovery_code')
    .where('person_id', '=', personId)
    .where('hash', '=', hash)
    .executeTakeFirstOrThrow()
  return numDeletedRows === 1n
}

export async function deleteRecoveryCodes(trx: Trx, personId: string): Promise<void> {
  await trx.deleteFrom('recovery_code').where('person_id', '=', personId).execute()
}

export async function countRecoveryCodes(db: Reader, personId: string): Promise<number> {
  return countRows(db.selectFrom('recovery_code').where('person_id', '=', personId))
}

const toIso = (time: number | null) => (time === null ? null : isoTime(time))

/** Returns the JSON form of a person, for the API and the command line. */
export const presentPerson = (person: Person) => ({
  id: person.id,
  name: person.name,
  email: person.email,
  role: person.role,
  joined: hasJoined(person),
  two_factor: person.totp_secret !== null,
  identity_provider: person.oidc_subject !== null,
  created_at: isoTime(person.created_at),
  invitation_expires_at: toIso(person.invitation_expires_at),
  last_signed_in_at: toIso(person.last_signed_in_at),
})
