import type { Database } from '../db/database.ts'
import { addressKey, cleanAddress, isFault, parseAddress } from '../engine/address/address.ts'
import { OperationError } from '../platform/operation-error.ts'
import { NO_TRACES, type Traces, tracesOf } from './purge-data.ts'

/**
 * Where an address stands, in each of the databases. Throws `address_invalid`, and `address_in_use` where a list that is
 * not finished holds it: its rows are still needed.
 */
export async function findTraces(databases: readonly Database[], given: string): Promise<Traces[]> {
  const { text } = cleanAddress(given)
  const address = parseAddress(text)
  if (isFault(address)) {
    throw new OperationError('address_invalid', { address: given, fault: address.message })
  }
  const asked = { key: addressKey(address), text }
  const all = await Promise.all(databases.map(database => tracesOf(database, asked)))
  const unfinished = all.flatMap(({ items }) => items).filter(one => !one.finished)
  const [first] = unfinished
  if (first === undefined) return all
  throw new OperationError('address_in_use', {
    ...{ address: text, jobId: first.jobId, isOfAccount: first.ofService },
    otherJobs: new Set(unfinished.map(one => one.jobId)).size - 1,
  })
}

/** What all of them have together. */
export const sumOfTraces = (all: readonly Traces[]): Traces =>
  all.reduce(
    (sum, { answers, items, verifications, events }) => ({
      answers: [...sum.answers, ...answers],
      items: [...sum.items, ...items],
      verifications: [...sum.verifications, ...verifications],
      events: [...sum.events, ...events],
    }),
    NO_TRACES,
  )
