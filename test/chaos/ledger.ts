import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect } from 'vitest'
import type { Received } from '../support/http-receiver.ts'
import { type Acknowledged, expectedReason } from './workload.ts'

/** Returns whether the file has unfinished jobs or deliveries, or reserved credits. */
export function hasOpenWork(dataDir: string): boolean {
  const database = openLedger(dataDir)
  const open = database
    .prepare(
      // A list that could not be stored on a full disk stays `loading`, invisible to clients, until
      // the service deletes it.
      `select exists (select 1 from job where finished_at is null and state <> 'loading')
      or exists (select 1 from delivery where state <> 'delivered')
      or exists (select 1 from credit where held <> 0)`,
    )
    .pluck()
    .get()
  database.close()
  return open === 1
}

/**
 * Asserts that history, credits, rows and events in the file of a service match the responses that
 * its clients received. The service has stopped, and all its work is done.
 */
export function expectLedger(
  dataDir: string,
  acknowledged: Acknowledged,
  received: readonly Received[],
): void {
  const { singles, singlesWithoutKey, asyncSingles, instantLists, batches } = acknowledged
  const database = openLedger(dataDir)
  const all = <Row>(query: string) => database.prepare(query).all() as Row[]

  const history = all<Verification>('select * from verification')
  const from = (source: string) => history.filter(one => one.source === source)
  const [keyed, others] = partition(from('single'), ({ email }) => email.includes('.single'))
  const [unkeyed, later] = partition(others, ({ email }) => email.includes('.unkeyed'))
  expect(reasonsOf(keyed)).toEqual(sorted(singles))
  const entered = new Map(reasonsOf(unkeyed))
  expect(entered.size).toBe(unkeyed.length)
  expect([...singlesWithoutKey].filter(([email, reason]) => entered.get(email) !== reason)).toEqual(
    [],
  )
  expect(reasonsOf(later)).toEqual(
    sorted([...asyncSingles.values()].map(email => [email, expectedReason(email)])),
  )
  expect(reasonsOf(from('bulk'))).toEqual(
    sorted([...instantLists.values()].flatMap(list => [...list])),
  )
  expect(reasonsOf(from('batch'))).toEqual(
    sorted([...batches.values()].flat().map(email => [email, expectedReason(email)])),
  )

  const items = Map.groupBy(
    all<Item>(
      `select job_id, item.state, text, result ->> '$.verdict.reason' as reason
      from item join job on job.id = item.job_id where job.type <> 'single' order by position`,
    ),
    ({ job_id }) => job_id,
  )
  const rowsIn = (id: string) =>
    items.get(id)?.map(({ state, text, reason }) => [state, text, reason])
  expect(new Set(items.keys())).toEqual(new Set([...instantLists.keys(), ...batches.keys()]))
  for (const [id, reasons] of instantLists) {
    expect(rowsIn(id)).toEqual([...reasons].map(row => ['done', ...row]))
  }
  for (const [id, emails] of batches) {
    expect(rowsIn(id)).toEqual(emails.map(email => ['done', email, expectedReason(email)]))
  }

  const [credits] = all(`select sum(used) as used, sum(held) as held from credit`)
  const charged = history.filter(one => one.cached === 0 && one.class !== 'unknown').length
  expect(credits).toEqual({ used: charged, held: 0 })
  const [usage] = all(
    'select sum(verifications) as verifications, sum(credits) as credits from usage',
  )
  expect(usage).toEqual({ verifications: history.length, credits: charged })

  const events = all<{ id: string; kind: string; body: string }>('select * from event')
  const emitted = events.map(({ kind, body }) => {
    const { data } = JSON.parse(body)
    return `${kind} ${kind === 'batch.completed' ? data.job_id : data.verification_id}`
  })
  expect(emitted.toSorted()).toEqual(
    [
      ...[...batches.keys()].map(id => `batch.completed ${id}`),
      ...[...asyncSingles.keys()].map(id => `verification.completed ${id}`),
    ].toSorted(),
  )
  expect(all(`select state, count(*) as deliveries from delivery group by state`)).toEqual([
    { state: 'delivered', deliveries: events.length },
  ])
  const bodies = new Set(received.map(({ body }) => body.toString()))
  expect(bodies).toEqual(new Set(events.map(({ body }) => body)))
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  database.close()
}

type Verification = {
  readonly email: string
  readonly reason: string
  readonly class: string
  readonly cached: number
  readonly source: string
}

type Item = {
  readonly job_id: string
  readonly state: string
  readonly text: string
  readonly reason: string | null
}

const openLedger = (dataDir: string) => new Sqlite(join(dataDir, 'ev.sqlite'), { readonly: true })

const sorted = (pairs: Iterable<readonly [string, string]>) =>
  [...pairs].toSorted(([a], [b]) => (a < b ? -1 : 1))

const reasonsOf = (rows: readonly Verification[]) =>
  sorted(rows.map(({ email, reason }) => [email, reason] as const))

function partition<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter(one => !isFirst(one))]
}
