import { isDeepStrictEqual } from 'node:util'
import type { Calls } from '../support/nth-call.ts'
import type { Row } from './backends.ts'
import type { World } from './service.ts'

/**
 * Describes what is wrong in the database of a service that has nothing left to do: the ledger must
 * equal the charges, and each event must be delivered.
 */
export async function describeState(
  { rows, receiver, isShared }: Pick<World, 'rows' | 'receiver' | 'isShared'>,
  { failed }: Calls,
): Promise<string[]> {
  const found: string[] = []
  const expectRows = async (what: string, text: string, expected: readonly Row[]) => {
    const actual = (await rows(text)).map(withNumbers)
    if (!isDeepStrictEqual(actual, expected)) found.push(`${what}: ${JSON.stringify(actual)}`)
  }
  // A syntax error and an unknown result are free.
  const [charged] = await rows(`
    select count(*) as credits from verification
    where sandbox = 0 and cached = 0 and class <> 'unknown' and reason <> 'invalid_email'`)
  const credits = Number(charged?.credits)
  await expectRows(
    'credits',
    'select coalesce(sum(used), 0) as used, coalesce(sum(held), 0) as held from credit',
    [{ used: credits, held: 0 }],
  )
  const [entries] = await rows(
    'select count(*) as verifications from verification where sandbox = 0',
  )
  await expectRows(
    'usage',
    `select coalesce(sum(verifications), 0) as verifications, coalesce(sum(credits), 0) as credits
      from usage`,
    [{ verifications: Number(entries?.verifications), credits }],
  )
  // No client sees a list that was not stored completely. On a shared database a member may still be
  // storing it, so it is deleted later.
  const ended = isShared ? `'completed', 'loading'` : `'completed'`
  await expectRows('reservations of jobs', 'select held from job where held <> 0', [])
  await expectRows('reservations of members', 'select amount from hold', [])
  await expectRows('unfinished lists', `select state from job where state not in (${ended})`, [])
  await expectRows(
    'rows',
    `select job.id, count(*) as rows from job join item on item.job_id = job.id
      where item.state not in ('done', 'same') group by job.id`,
    [],
  )
  const events = await rows('select id, body from event')
  await expectRows(
    'deliveries',
    'select state, count(*) as count from delivery group by state',
    events.length === 0 ? [] : [{ state: 'delivered', count: events.length }],
  )
  // At least once; a call that fails repeats one request at most.
  const sent = receiver.sent.map(({ body }) => body)
  const bodies = new Set(events.map(({ body }) => body))
  if (!isDeepStrictEqual(new Set(sent), bodies)) found.push('other events were sent than stored')
  const repeated = sent.length - bodies.size
  if (repeated > (failed === null ? 0 : 1)) found.push(`${repeated} events were sent again`)
  return found
}

/** PostgreSQL returns counts and sums as text. */
const withNumbers = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) =>
      typeof value === 'string' && /^\d+$/.test(value) ? [name, Number(value)] : [name, value],
    ),
  )
