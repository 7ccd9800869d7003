import { expect, test } from 'vitest'
import { createEventService } from '../support/event-service.ts'
import { failStoring } from '../support/list-service.ts'

// Mails about the end of lists, from the request of the list to the mail server.

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const SANDBOX = { headers: { 'X-EV-Sandbox': 'true' } }
const EMAILS = ['valid@a.example', 'valid2@a.example', 'invalid@a.example', 'risky@a.example']

/** A service whose account has an address, and a list that is mailed about. */
async function createService(list: object = {}, emails = EMAILS) {
  const service = await createEventService({
    timings: { deliveries: { duePollMs: 90 * DAY }, alerts: { pollMs: 90 * DAY } },
  })
  await service.patch('/v1/account', { email: 'owner@shop.example' })
  // Changes of an account apply within a second.
  await service.pass(1_000)
  const id = await service.submit(emails, { ...SANDBOX, name: 'customers', notify: true, ...list })
  const mailed = (count: number) => service.until(() => service.notify.sent.length === count)
  return { ...service, id, mailed }
}

const warnings = ({ lines }: Pick<Awaited<ReturnType<typeof createService>>, 'lines'>) =>
  lines.filter(({ level }) => level === 'warn' || level === 'error')

test('a completed list is reported once, with its counts and the URL of its page', async () => {
  const service = await createService()
  const { notify, id, mailed, pass, startMails } = service
  startMails()
  await mailed(1)
  expect(notify.sent).toMatchObject([
    {
      to: 'owner@shop.example',
      subject: 'ev: list "customers" is completed (4 rows)',
      messageId: expect.stringMatching(/^<job_\w+\.\d+@ev\.test>$/),
    },
  ])
  const text = notify.sent[0]?.text ?? ''
  expect(text).toContain('The list "customers" is completed: 4 rows.')
  expect(text).toMatch(/deliverable +2\n +risky +1\n +undeliverable +1\n +unknown +0\n/)
  expect(text).toContain(`Results: https://ev.test/lists/${id}`)
  await pass(10 * MINUTE)
  expect(notify.sent).toHaveLength(1)
  expect(warnings(service)).toEqual([])
})

test('a list without notify, and one that was deleted, are not reported', async () => {
  const { startMails, pass, notify, request, finished, submit, id } = await createService()
  const other = await submit(EMAILS, SANDBOX)
  for (const one of [id, other]) await finished(one)
  await request(`/v1/jobs/${id}`, { method: 'DELETE', ...SANDBOX })
  startMails()
  await pass(5 * MINUTE)
  expect(notify.tried).toEqual([])
})

test('a failed list is reported, and again when it is completed', async () => {
  const service = await createService({ headers: {} }, ['ann@a.test', 'zoe@a.test'])
  const { startMails, mailed, notify, request, id, finished } = service
  const { isEnrolled } = service.service.feedback
  failStoring(service)
  startMails()
  await finished(id)
  await mailed(1)
  Object.assign(service.service.feedback, { isEnrolled })
  expect((await request(`/v1/jobs/${id}/resume`, { method: 'POST' })).status).toBe(200)
  await mailed(2)
  expect(notify.sent.map(({ subject }) => subject)).toEqual([
    'ev: list "customers" has failed (2 rows)',
    'ev: list "customers" is completed (2 rows)',
  ])
  expect(notify.sent[0]?.text).toContain('after 0 of 2 rows. You can resume it.')
})

test('a mail that fails is retried with the same Message-ID, for a week', async () => {
  const service = await createService()
  const { startMails, until, mailed, notify } = service
  notify.handleWith(() => Promise.reject(new Error('421 later')))
  startMails()
  await until(() => notify.tried.length === 2)
  expect(new Set(notify.tried.map(({ messageId }) => messageId)).size).toBe(1)
  expect(warnings(service)[0]).toMatchObject({
    message: 'job mail could not be sent; will retry',
    fields: { jobId: service.id, why: '421 later' },
  })
  notify.handleWith(async () => {})
  await mailed(1)
  await service.pass(10 * MINUTE)
  expect(notify.tried).toHaveLength(3)
})

test('a mail is given up after it has failed for a time', async () => {
  const service = await createService()
  const { startMails, until, notify, pass } = service
  notify.handleWith(() => Promise.reject(new Error('no')))
  startMails({ giveUpMs: 12 * MINUTE })
  await until(() => warnings(service).at(-1)?.message === 'job mail could not be sent; giving up')
  const { length } = notify.tried
  expect(length).toBeGreaterThan(2)
  await pass(20 * MINUTE)
  expect(notify.tried).toHaveLength(length)
})

test('of two processes, one sends the mail; that of a process that crashed is sent again', async () => {
  const { startMails, until, mailed, notify, pass } = await createService()
  const { promise: hanging, resolve } = Promise.withResolvers<void>()
  notify.handleWith(() => hanging)
  startMails()
  await until(() => notify.tried.length === 1)
  notify.handleWith(async () => {})
  startMails()
  await pass(MINUTE)
  expect(notify.tried).toHaveLength(1)
  await mailed(1)
  expect(notify.sent[0]?.messageId).toBe(notify.tried[0]?.messageId)
  resolve()
})

test('a mail that was sent while the database becomes unavailable is recorded afterwards, and not sent again', async () => {
  const { startMails, mailed, notify, database, pass } = await createService()
  const start = database.db.transaction.bind(database.db)
  let left = 3
  database.db.transaction = () => {
    if (notify.sent.length === 0 || left-- <= 0) return start()
    throw Object.assign(new Error('the server starts'), { code: '57P03' })
  }
  startMails()
  await mailed(1)
  await pass(20 * MINUTE)
  expect([notify.sent.length, left < 0]).toEqual([1, true])
})

test('if the account lost its address, the log has a line', async () => {
  const service = await createService()
  await service.finished(service.id)
  await service.patch('/v1/account', { email: null })
  service.startMails()
  await service.until(() => warnings(service).length > 0)
  expect(service.notify.tried).toEqual([])
  expect(warnings(service)).toMatchObject([
    {
      message: 'ev: list "customers" is completed (4 rows)',
      fields: { jobId: service.id, state: 'completed' },
    },
  ])
})

test('text of the user does not break the mail', async () => {
  const { startMails, mailed, notify } = await createService({ name: 'a\u202eBcc: x@x.example' })
  startMails()
  await mailed(1)
  expect(notify.sent[0]?.subject).not.toMatch(/[\r\n\u202e]/)
})
