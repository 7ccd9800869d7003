import { sleep } from '../../src/platform/clock.ts'
import type { CallKind } from '../support/nth-call.ts'
import type { Story } from './service.ts'
import { describeWrongRows, isExpected, TEXTS } from './small-list.ts'

const KEY = { idempotencyKey: 'list-1' }

/** A list with its webhook. */
export const LIST: Story = {
  async act(client) {
    await client.batch([...TEXTS], KEY)
    return []
  },
  check: async ({ rows }, client, { failed }) => {
    const jobs = await rows(`select id from job where state <> 'loading'`)
    if (jobs.length !== 1) return [`${jobs.length} jobs`]
    const reasons: (string | null | undefined)[] = []
    for await (const { reason } of client.jobs.rows(String(jobs[0]?.id))) reasons.push(reason)
    const events = (await rows('select kind from event')).map(({ kind }) => kind)
    return [
      ...describeWrongRows(reasons, mayBeUnknown(failed)),
      ...(`${events}` === 'batch.completed' ? [] : [`events: ${events}`]),
    ]
  },
}

/** The same list, which an earlier process has begun. */
export const RESUMED_LIST: Story = {
  before: (_, client) => client.batch([...TEXTS], KEY),
  act: async () => [],
  check: LIST.check,
}

/**
 * The events of simulated lists, which are retried within seconds. The receiver was down while an
 * earlier process ran.
 */
export const DELIVERY: Story = {
  async before({ clock, receiver, rows }, _, sandbox) {
    receiver.answer(503)
    for (const email of ['valid@a.test', 'invalid@a.test', 'risky@a.test'])
      await sandbox.batch([email])
    while ((await rows(RETRIED)).length < 3) await sleep(clock, 100)
  },
  act: async () => [],
  check: async ({ rows }) => {
    const attempts = await rows('select count(*) as attempts from attempt group by delivery_id')
    const isWhole = attempts.length === 3 && attempts.every(({ attempts }) => Number(attempts) >= 2)
    return isWhole ? [] : [`attempts: ${JSON.stringify(attempts)}`]
  },
}

const RETRIED = `select id from delivery where state = 'retry_scheduled'`

const ASKED = [
  ['ann@a.test', 'accepted_email'],
  ['gone@a.test', 'rejected_email'],
] as const

/** Two addresses that are answered at once, by requests that are repeated with their key. */
export const KEYED_SINGLES: Story = {
  async act(_, request) {
    const wrong: string[] = []
    for (const [email, expected] of ASKED) {
      const response = await request('/v1/verify/single', { email }, email)
      if (response.status !== 200) throw new Error(await response.text())
      const { reason } = (await response.json()) as { readonly reason: string }
      if (!isExpected(reason, expected, true)) wrong.push(`${email}: ${reason}`)
    }
    return wrong
  },
  check: async ({ rows }) => {
    const history = (await rows(HISTORY)).map(({ email }) => email)
    return `${history}` === `${ASKED.map(([email]) => email)}` ? [] : [`history: ${history}`]
  },
}

/** The same without keys: a request that failed may have been charged before it is repeated. */
export const SINGLES: Story = {
  async act(client) {
    const wrong: string[] = []
    for (const [email, expected] of ASKED) {
      const { reason } = await client.verify.single(email)
      if (!isExpected(reason, expected, true)) wrong.push(`${email}: ${reason}`)
    }
    return wrong
  },
  check: async ({ rows }, _, { failed }) => {
    const history = (await rows(HISTORY)).map(({ email }) => email)
    const repeated = history.length - ASKED.length
    const isWhole = ASKED.every(([email]) => history.includes(email))
    return isWhole && repeated <= (failed === null ? 0 : 2) ? [] : [`history: ${history}`]
  },
}

const HISTORY = 'select email from verification order by email'

/** Trouble with the database or a webhook is not a reason for an unknown result. */
const mayBeUnknown = (failed: string | null) =>
  failed !== null && !/^(statement|commit|request)/.test(failed)

const MAIL = ['dns', 'connect', 'read', 'write'] as const
const DATABASE = ['statement', 'commit', 'timer'] as const

type StoryOfKinds = {
  readonly name: string
  readonly story: Story
  readonly kinds: readonly CallKind[]
}

export const STORIES: readonly StoryOfKinds[] = [
  { name: 'a list', story: LIST, kinds: [...DATABASE, ...MAIL, 'request'] },
  { name: 'a list that is continued', story: RESUMED_LIST, kinds: [...DATABASE, ...MAIL] },
  { name: 'a webhook delivery', story: DELIVERY, kinds: [...DATABASE, 'request'] },
  { name: 'a single with a key', story: KEYED_SINGLES, kinds: [...DATABASE, ...MAIL] },
  { name: 'a single', story: SINGLES, kinds: [...DATABASE, ...MAIL] },
]
