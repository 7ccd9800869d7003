import { addressKey, cleanAddress, isFault, parseAddress } from '../../address/address.ts'
import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import type { Database } from '../../store/database.ts'
import { type Traces, tracesOf } from '../../store/purge.ts'

/** Where an address stands. Throws when a list that is not finished holds it: its rows are still needed. */
export async function findTraces(database: Database | null, given: string): Promise<Traces> {
  const { text } = cleanAddress(given)
  const address = parseAddress(text)
  if (isFault(address)) {
    throw new EvError(
      'bad_address',
      `“${cleanText(given)}” is no address. ${address.message} --address takes one such as ann@example.com.`,
    )
  }
  if (database === null) return { answers: [], items: [] }
  const traces = await tracesOf(database, { key: addressKey(address), text })
  const unfinished = new Set(traces.items.filter(one => !one.finished).map(one => one.jobId))
  const [first, ...more] = unfinished
  if (first === undefined) return traces
  const others = more.length === 0 ? '' : ` and ${more.length} more (see “ev jobs”)`
  throw new EvError(
    'usage',
    `${cleanText(text)} stands in a list that is not finished: ${first}${others}. Finish it (“ev jobs resume ${first}”) ` +
      `or cancel it (“ev jobs cancel ${first}”) first. Nothing was forgotten.`,
  )
}
