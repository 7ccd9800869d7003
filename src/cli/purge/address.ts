import { addressKey, cleanAddress, isFault, parseAddress } from '../../address/address.ts'
import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import { NO_TRACES, type Traces, tracesOf } from '../../store/care/purge.ts'
import type { Database } from '../../store/database.ts'

/**
 * Where an address stands, in each of the databases. Throws when a list that is not finished holds it: its rows are still
 * needed.
 */
export async function findTraces(databases: readonly Database[], given: string): Promise<Traces[]> {
  const { text } = cleanAddress(given)
  const address = parseAddress(text)
  if (isFault(address)) {
    throw new EvError(
      'bad_address',
      `“${cleanText(given)}” is no address. ${address.message} --address takes one such as ann@example.com.`,
    )
  }
  const asked = { key: addressKey(address), text }
  const all = await Promise.all(databases.map(database => tracesOf(database, asked)))
  const unfinished = all.flatMap(({ items }) => items).filter(one => !one.finished)
  const [first] = unfinished
  if (first === undefined) return all
  const more = new Set(unfinished.map(one => one.jobId)).size - 1
  const others = more === 0 ? '' : ` and ${more} more (see “ev jobs”)`
  const finish = first.ofService
    ? 'Let the service finish it'
    : `Finish it (“ev jobs resume ${first.jobId}”)`
  throw new EvError(
    'usage',
    `${cleanText(text)} stands in a list that is not finished: ${first.jobId}${others}. ${finish} ` +
      `or cancel it (“ev jobs cancel ${first.jobId}”) first. Nothing was forgotten.`,
  )
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
