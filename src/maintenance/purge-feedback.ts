import { type RawBuilder, sql } from 'kysely'
import type { Database, Trx } from '../db/database.ts'
import { eachPage } from './pages.ts'

/** Feedback that contains an address, by key. */
export type PersonalFeedback = {
  readonly pieces: readonly { readonly account_id: string; readonly dedupe_key: string }[]
  readonly addresses: readonly { readonly account_id: string; readonly address_key: string }[]
}

export const NO_PERSONAL_FEEDBACK: PersonalFeedback = { pieces: [], addresses: [] }

export const mergePersonalFeedback = (a: PersonalFeedback, b: PersonalFeedback) => ({
  pieces: [...a.pieces, ...b.pieces],
  addresses: [...a.addresses, ...b.addresses],
})

type Search = {
  /** The lower-case key of the address. */
  readonly key: string
  readonly containsAddress: (column: string) => RawBuilder<unknown>
  readonly isAbout: (...texts: (string | null)[]) => boolean
}

/** Finds feedback under the key of an address, or with a text that contains the address. */
export async function findPersonalFeedback(
  db: Database['db'],
  { key, containsAddress, isAbout }: Search,
): Promise<PersonalFeedback> {
  type Found = { account_id: string; address_key: string; text: string | null }
  const isPersonal = ({ address_key, text }: Found) =>
    address_key.toLowerCase() === key || isAbout(text)
  const pieces = await eachPage(db, 'feedback', async within => {
    const { rows } = await sql<Found & { dedupe_key: string }>`
      select account_id, dedupe_key, address_key, text from feedback
      where ${within} and (lower(address_key) = ${key} or ${containsAddress('text')})`.execute(db)
    return rows
  })
  const addresses = await eachPage(db, 'feedback_address', async within => {
    const { rows } = await sql<Found>`
      select account_id, address_key, text from feedback_address
      where ${within} and (lower(address_key) = ${key} or ${containsAddress('text')})`.execute(db)
    return rows
  })
  return {
    pieces: pieces
      .filter(isPersonal)
      .map(({ account_id, dedupe_key }) => ({ account_id, dedupe_key })),
    addresses: addresses
      .filter(isPersonal)
      .map(({ account_id, address_key }) => ({ account_id, address_key })),
  }
}

/** Deletes feedback. The counts of its domain and of verdicts stay: they name no address. */
export async function erasePersonalFeedback(
  trx: Trx,
  { pieces, addresses }: PersonalFeedback,
): Promise<void> {
  for (const { account_id, dedupe_key } of pieces) {
    await trx
      .deleteFrom('feedback')
      .where('account_id', '=', account_id)
      .where('dedupe_key', '=', dedupe_key)
      .execute()
  }
  for (const { account_id, address_key } of addresses) {
    await trx
      .deleteFrom('feedback_address')
      .where('account_id', '=', account_id)
      .where('address_key', '=', address_key)
      .execute()
  }
}
