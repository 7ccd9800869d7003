import { describe, expect, test } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import type { Result } from '../../../src/engine/verdict/verdict.ts'
import { startJob } from '../../../src/jobs/job-state.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { isRandomRecipient, knows, mail, toRecipients } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'

// Rows that a killed process or an earlier version of ev left behind.

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'

describe('a list that was killed after its answers were cached and before its results were stored', () => {
  /** What is stored then: the job and its answers, without results. */
  async function forgetResults({ db }: Database): Promise<void> {
    await db
      .updateTable('item')
      .set({ state: 'queued', result: null, class: null, operator: null, domain: null })
      .execute()
    await db
      .updateTable('job')
      .set({ state: 'queued', finished_at: null, done: 0, failed: 0, unknown: 0, risky: 0 })
      .set({ deliverable: 0, undeliverable: 0 })
      .execute()
  }

  const stable = (results: readonly (Result | null)[]) =>
    results.map(result => ({ ...result, tookMs: 0, evidence: { ...result?.evidence, timings: 0 } }))

  test('has the same results as an undisturbed one, and asks for nothing again', async () => {
    const services = await createTestJob({
      texts: ['ann@a.test', 'gone@a.test', 'ann@b.test'],
      script: knows('ann'),
    })
    await services.work({ cache: true })
    const [undisturbed, asked] = [await services.results(), services.asked()]
    await forgetResults(services.database)
    await services.clock.advance(MINUTE)
    expect(await services.work({ cache: true })).toMatchObject({ state: 'completed', done: 3 })
    expect(stable(await services.results())).toEqual(stable(undisturbed))
    expect(undisturbed.map(result => result?.cached)).toEqual([false, false, false])
    expect(services.asked()).toEqual(asked)
  })

  test('makes the catch-all test that it had not finished', async () => {
    let random = 0
    const services = await createTestJob({
      texts: ['ann@a.test'],
      script: toRecipients(to => {
        if (!isRandomRecipient(to)) return OK
        return random++ === 0 ? GREYLISTED : UNKNOWN
      }),
    })
    await services.work({ cache: true, wait: false })
    expect((await services.results())[0]?.evidence.catchAll).toBeNull()
    await forgetResults(services.database)
    await services.work({ cache: true })
    expect((await services.results())[0]).toMatchObject({
      cached: false,
      verdict: { reason: 'accepted_email' },
    })
  })

  test('still marks the answers that an earlier list was given', async () => {
    const services = await createTestJob({ texts: ['ann@a.test'], script: knows('ann') })
    await services.work({ cache: true })
    await forgetResults(services.database)
    await services.clock.advance(MINUTE)
    const created_at = services.clock.now()
    await services.database.db.updateTable('job').set({ created_at }).execute()
    await services.work({ cache: true })
    expect((await services.results()).map(result => result?.cached)).toEqual([true])
  })
})

describe('an item that cannot be restored', () => {
  test.each([
    ['its route is no longer valid', { route: 'null' }, 'accepted_email'],
    ['its route is damaged', { route: '{"kind"' }, 'accepted_email'],
    [
      'its text is not an address by the current rules',
      { text: 'ann..lee@a.test' },
      'invalid_email',
    ],
  ])('because %s is routed again and stops nothing', async (_, change, reason) => {
    const { work, database, reasons } = await createTestJob({
      texts: ['ann@a.test', 'bob@a.test'],
      script: knows('ann', 'bob'),
      zone: mail('a.test', '192.0.2.1'),
    })
    // The state left by an earlier version of ev.
    await startJob(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({ state: 'routed', operator: 'a.test', domain: 'a.test', route: 'null', ...change })
      .where('position', '=', 1)
      .execute()
    expect(await work()).toMatchObject({ state: 'completed', done: 2 })
    expect(await reasons()).toEqual([reason, 'accepted_email'])
  })

  test('of an operator that the settings now separate is probed at its own rate', async () => {
    const domains = ['one.test', 'two.test']
    const texts = domains.flatMap(domain => [1, 2, 3].map(n => `u${n}@${domain}`))
    const { work, database, mx } = await createTestJob({
      texts,
      zone: Object.fromEntries([
        ...domains.map(domain => [domain, { MX: [[10, `mx.${domain}`]] }]),
        ...domains.map((domain, n) => [`mx.${domain}`, { A: [`192.0.2.${n + 7}`] }]),
      ]),
      structures: { operators: { two: { hosts: ['mx.two.test'], 'recipients-per-session': 1 } } },
    })
    // The state left by an ev without these settings.
    await startJob(database, 'job_a')
    for (const [n, text] of texts.entries()) {
      const domain = text.slice(3)
      const route = JSON.stringify({
        kind: 'mx',
        hosts: [{ preference: 10, host: `mx.${domain}` }],
      })
      await database.db
        .updateTable('item')
        .set({ state: 'routed', operator: 'both.test', domain, route })
        .where('position', '=', n + 1)
        .execute()
    }
    expect(await work()).toMatchObject({ state: 'completed', done: 6 })
    const sizes = (host: string) =>
      mx.sessions.filter(({ to }) => to.host === host).map(({ lines }) => recipientsIn(lines))
    expect([sizes('mx.one.test'), sizes('mx.two.test')]).toEqual([[3], [1, 1, 1]])
  })

  test('is left for the next start if the job stops before the DNS answers', async () => {
    const { work, database, clock, reasons } = await createTestJob({
      texts: ['ann@never.test'],
      zone: { 'never.test': 'never' },
    })
    await startJob(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({ state: 'routed', operator: 'a.test', domain: 'never.test', route: 'null' })
      .execute()
    const stopping = new AbortController()
    clock.after(SECOND, () => stopping.abort())
    const startedAt = clock.monotonicNow()
    await work({ stopping: stopping.signal })
    expect(clock.monotonicNow() - startedAt).toBeLessThan(2 * SECOND)
    expect(await reasons()).toEqual([null])
  })
})

const recipientsIn = (lines: readonly string[]) =>
  lines.filter(line => /^RCPT TO:<u\d@/.test(line)).length
