import { describe, expect, test } from 'vitest'
import { PLANS } from '../../src/accounts/plan.ts'
import { mail, toRecipients } from '../support/engine.ts'
import { createSimulatedList, failStoring, SANDBOX } from '../support/list-service.ts'
import { createTestService } from '../support/service.ts'

// Lists from their submission to their rows, with a worker, on both databases.

type Row = { readonly row: number; readonly email: string; readonly class: string | null }
type Limit = { readonly name: string; readonly limit: number; readonly remaining: number }
type Json = Awaited<ReturnType<typeof createTestService>>['json']

const POST = { method: 'POST' }
const DAY = 86_400_000
/** Tests ask often while their clock stands still. */
const FREE = { plan: 'free', settings: { limits: false } } as const

/** Rows of all pages, or of those that the query selects. */
async function rowsOf(json: Json, path: string, query = ''): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more: string = cursor && `&cursor=${cursor}`
    const { data } = await json(`${path}/results?limit=4${query}${more}`)
    const page = data as { items: Row[]; next_cursor: string | null }
    rows.push(...page.items)
    cursor = page.next_cursor
  }
  return rows
}

const positions = async (json: Json, path: string, query: string) =>
  (await rowsOf(json, path, query)).map(({ row }) => row)

const ids = async (json: Json, query = '', key?: string) => {
  const { data } = await json(`/v1/jobs?${query}`, key === undefined ? {} : { key })
  return (data as { items: { job_id: string }[] }).items.map(({ job_id }) => job_id)
}

describe('the rows of a list', () => {
  test('are stored with any text, in their order, and duplicates have the result of the first', async () => {
    const odd = ['"', "o'neil@x.test", '\u0001', '😀@x.test', '$1', '\\', '%_']
    const emails = ['valid@a.test', ...odd, 'VALID@a.test', 'risky@a.test', 'valid@a.test']
    const { json, path } = await createSimulatedList(emails)
    const rows = await rowsOf(json, path)
    expect(rows.map(({ row }) => row)).toEqual(emails.map((_, n) => n + 1))
    const shown = rows.map(({ email }) => email)
    expect(shown.filter((_, n) => odd[n - 1] !== '\u0001')).toEqual(
      emails.filter(text => text !== '\u0001'),
    )
    expect(rows.filter(one => one.class === 'deliverable').map(({ row }) => row)).toEqual([
      1, 5, 9, 11,
    ])
    expect(await json(path)).toMatchObject({
      total_emails: 11,
      data: { classes: { deliverable: 4 } },
    })
  })

  test('are filtered, searched and sorted beyond ASCII', async () => {
    const emails = [
      ...['valid-zoë@a.test', 'VALID-Österreich@a.test', 'risky@B.test', 'timeout@c.test', 'x'],
      ...['invalid@d.test', 'role@e.test', 'catchall@f.test'],
    ]
    const { json, path } = await createSimulatedList(emails)
    const found = (query: string) => positions(json, path, `&${query}`)
    expect(await found('class=risky')).toEqual([3, 7, 8])
    expect(await found('class=unknown,undeliverable')).toEqual([4, 5, 6])
    expect(await found('reason=timeout')).toEqual([4])
    expect(await found('search=VALID')).toEqual([1, 2, 6])
    expect(await found(`search=${encodeURIComponent('ÖST')}`)).toEqual([2])
    expect(await found('sort=email')).toEqual([8, 6, 3, 7, 4, 1, 2, 5])
    expect(await found('sort=email&order=desc&class=risky')).toEqual([7, 3, 8])
  })

  test('are counted by class, reason and the twenty most frequent operators', async () => {
    const domains = Array.from({ length: 22 }, (_, n) => `op${String(n + 1).padStart(2, '0')}.test`)
    const zone = Object.assign(
      {},
      ...domains.map((domain, n) => mail(domain, `192.0.2.${n + 10}`)),
    ) as ReturnType<typeof mail>
    const { json, submit, finished } = await createTestService({
      works: true,
      engine: {
        zone,
        script: toRecipients(to => (to.startsWith('user') ? '250 Ok' : '550 5.1.1 No')),
      },
    })
    // The nth operator has n rows.
    const emails = domains.flatMap((domain, n) =>
      Array.from({ length: n + 1 }, (_, row) => `user${row}@${domain}`),
    )
    const id = await submit([...emails, 'no address'])
    await finished(id)
    const { data } = await json(`/v1/jobs/${id}/breakdown`)
    expect(data).toMatchObject({
      done: 254,
      classes: { deliverable: 253, undeliverable: 1 },
      reasons: [
        { reason: 'accepted_email', class: 'deliverable', count: 253 },
        { reason: 'invalid_email', class: 'undeliverable', count: 1 },
      ],
      operators_left: 4,
    })
    const { operators } = data as { operators: { operator: string; count: number }[] }
    expect(operators.map(({ operator, count }) => `${operator} ${count}`)).toEqual(
      domains
        .map((domain, n) => `${domain} ${n + 1}`)
        .toReversed()
        .slice(0, 20),
    )
  })
})

describe('the lists of an account', () => {
  test('are paged, newest first, and filtered by state, sandbox and metadata', async () => {
    const service = await createTestService()
    const { json, submit, clock, addAccount, addKey } = service
    const submitted: string[] = []
    for (const metadata of [{ 'a."b"': 'x', c: '' }, { c: 'x' }, {}]) {
      submitted.unshift(await submit(['ann@a.test'], { metadata }))
      await clock.advance(1)
    }
    const [third = '', second = '', first = ''] = submitted
    const simulated = await submit(['valid@a.test'], SANDBOX)
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    const foreign = await submit(['ann@a.test'], { key })
    expect(await ids(json)).toEqual([third, second, first])
    const { data } = await json('/v1/jobs?limit=2')
    const { next_cursor } = data as { next_cursor: string }
    expect(await ids(json, `limit=2&cursor=${next_cursor}`)).toEqual([first])
    expect(await ids(json, '', key)).toEqual([foreign])
    expect(((await json('/v1/jobs', SANDBOX)).data as { items: object[] }).items).toMatchObject([
      { job_id: simulated },
    ])
    const metadata = (pairs: Record<string, string>) =>
      ids(
        json,
        new URLSearchParams(
          Object.entries(pairs).map(([k, v]): [string, string] => [`metadata[${k}]`, v]),
        ).toString(),
      )
    expect(await metadata({ 'a."b"': 'x' })).toEqual([first])
    expect(await metadata({ c: 'x' })).toEqual([second])
    await json(`/v1/jobs/${second}/cancel`, POST)
    expect(await ids(json, 'status=cancelled')).toEqual([second])
    expect(await ids(json, 'status=queued')).toEqual([third, first])
  })
})

describe('a list that ends early', () => {
  test('returns its unused credits when it fails, and continues when it is resumed', async () => {
    const service = await createTestService({ ...FREE, works: true })
    const { json, submit, finished, credits } = service
    const { isEnrolled } = service.service.feedback
    failStoring(service)
    const id = await submit(['ann@a.test', 'bob@a.test', 'zoe@a.test'])
    await finished(id)
    expect(await json(`/v1/jobs/${id}`)).toMatchObject({
      status: 'failed',
      processed_emails: 0,
      error: { code: 'server_error' },
    })
    expect(await credits()).toEqual({ used: 0, held: 0 })
    Object.assign(service.service.feedback, { isEnrolled })
    await json(`/v1/jobs/${id}/resume`, POST)
    await finished(id)
    expect(await json(`/v1/jobs/${id}`)).toMatchObject({ status: 'completed', error: null })
    // The answers of the first run were cached.
    expect(await credits()).toEqual({ used: 0, held: 0 })
  })

  test('is resumed for a credit per address, and not beyond the concurrent lists of the plan', async () => {
    const { json, credits, submit, request } = await createTestService(FREE)
    const emails = ['ann@a.test', 'no address', 'ann@A.TEST', 'bob@a.test', 'ann@a.test', '']
    const path = `/v1/jobs/${await submit(emails)}`
    await json(`${path}/cancel`, POST)
    expect(await credits()).toEqual({ used: 0, held: 0 })
    const lists = PLANS.find(({ name }) => name === FREE.plan)?.concurrentJobs ?? 0
    const open: string[] = []
    for (let n = 0; n < lists; n++) open.push(await submit([`user${n}@a.test`]))
    const refused = await request(`${path}/resume`, POST)
    expect([refused.status, await refused.json()]).toEqual([
      429,
      expect.objectContaining({ reason: 'concurrent_jobs_exceeded' }),
    ])
    expect(await json(path)).toMatchObject({ status: 'cancelled' })
    await json(`/v1/jobs/${open[0]}/cancel`, POST)
    const before = await credits()
    expect((await request(`${path}/resume`, POST)).status).toBe(200)
    expect((await credits()).held).toBe((before.held ?? 0) + 2)
  })

  test('is deleted with its rows, of any number, and with its history; others stay', async () => {
    const many = Array.from({ length: 5_001 }, (_, n) => `valid${n}@a.test`)
    const service = await createSimulatedList(many)
    const { json, path, request, submit, finished } = service
    const other = await submit(['valid@a.test'], SANDBOX)
    await finished(other)
    expect((await request(path, { method: 'DELETE', ...SANDBOX })).status).toBe(204)
    expect((await request(path, SANDBOX)).status).toBe(404)
    const { data } = await json('/v1/history?limit=200', SANDBOX)
    expect(data).toMatchObject({ items: [{ job_id: other }] })
    const { limits } = (await json('/v1/limits')).data as { limits: Limit[] }
    const stored = limits.find(({ name }) => name === 'stored_rows')
    expect((stored?.limit ?? 0) - (stored?.remaining ?? 0)).toBe(1)
  })
})

describe('a list that is verified again', () => {
  /** A finished list of the Free plan whose second server blocks ev. */
  async function createBlockedList() {
    const blocking = new Set(['mx.b.test'])
    const service = await createTestService({
      ...FREE,
      works: true,
      engine: {
        zone: mail('b.test', '192.0.2.2'),
        script: {
          greeting: ({ to }) => (blocking.has(to.host) ? '554 5.7.1 Blocked by SBL' : undefined),
          answer: toRecipients(to => (/^(ann|bob)/.test(to) ? '250 Ok' : '550 5.1.1 No such user')),
        },
      },
    })
    const emails = ['ann@a.test', 'bob@b.test', 'bob@b.test', 'zoe@a.test', 'no address']
    const id = await service.submit(emails, { name: 'March' })
    await service.finished(id)
    const path = `/v1/jobs/${id}`
    const reverify = async (body: object = {}) =>
      service.json(`${path}/reverify`, { body }) as Promise<{ job_id: string }>
    return { ...service, id, path, blocking, reverify }
  }

  test('keeps the other results, and its changes are those of the selected rows', async () => {
    const service = await createBlockedList()
    const { json, blocking, reverify, finished, credits, clock, id, request, path } = service
    await clock.advance(DAY)
    blocking.clear()
    const { job_id } = await reverify({ only: ['unknown'] })
    expect(await credits()).toEqual({ used: 0, held: 1 })
    await finished(job_id)
    expect(await credits()).toEqual({ used: 1, held: 0 })
    expect(await json(`/v1/jobs/${job_id}`)).toMatchObject({
      name: 'March',
      previous_job_id: id,
      data: { summary: { total: 5, valid: 3, invalid: 2 } },
    })
    // The new list stores the previous results.
    expect((await request(path, { method: 'DELETE' })).status).toBe(204)
    const changes = async (query = '') => (await json(`/v1/jobs/${job_id}/changes${query}`)).data
    expect(await changes()).toMatchObject({
      items: [
        { row: 2, before: { class: 'unknown' }, after: { class: 'deliverable' } },
        { row: 3, before: { class: 'unknown' }, after: { class: 'deliverable' } },
      ],
    })
    expect(await changes('?limit=1')).toMatchObject({ items: [{ row: 2 }], has_more: true })
    expect(await changes('?from=deliverable')).toMatchObject({ items: [] })
  })

  test('has the rows that match a condition, and is refused without one', async () => {
    const { json, clock, reverify, request, path, finished } = await createBlockedList()
    const done = async (body: object) => {
      const { job_id } = await reverify(body)
      const { processed_emails } = await json(`/v1/jobs/${job_id}`)
      await finished(job_id)
      return processed_emails
    }
    await clock.advance(3 * DAY)
    const refused = await request(`${path}/reverify`, { body: { older_than_days: 5 } })
    expect([refused.status, await ids(json)]).toEqual([400, [path.slice(9)]])
    expect(await done({ older_than_days: 2 })).toBe(1)
    expect(await done({ only: ['undeliverable'] })).toBe(4)
  })

  test('is refused without enough credits, and beyond the rows of the plan, and leaves nothing', async () => {
    const service = await createBlockedList()
    const { json, submit, request, path, credits, finished } = service
    const rest = await submit(Array.from({ length: 96 }, (_, n) => `bob${n}@a.test`))
    await finished(rest)
    const before = await credits()
    expect(before).toEqual({ used: 98, held: 0 })
    const response = await request(`${path}/reverify`, { body: {} })
    expect([response.status, await response.json()]).toEqual([
      429,
      expect.objectContaining({ reason: 'credits_exceeded' }),
    ])
    expect(await ids(json)).toHaveLength(2)
    expect(await credits()).toEqual(before)
    // Rows without an address to verify cost nothing.
    expect((await request(`${path}/reverify`, { body: { only: ['unknown'] } })).status).toBe(201)
  })
})
