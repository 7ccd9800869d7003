import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { findAccount, presentAccount } from '../accounts/account-store.ts'
import { readCredit } from '../accounts/credits/credit-store.ts'
import type { Verification } from '../accounts/credits/history.ts'
import { getHistoryPage } from '../accounts/credits/history-page.ts'
import { listUsage, type Usage } from '../accounts/credits/usage.ts'
import { accountError } from '../accounts/errors.ts'
import { listKeys } from '../accounts/key-store.ts'
import { listPeople } from '../accounts/people/person-store.ts'
import { periodEnd, periodStart } from '../accounts/plan.ts'
import type { BucketState } from '../accounts/rate-limits/windows.ts'
import { type ActionPolicy, decideVerdict } from '../engine/verdict/action.ts'
import type { Reason, Risk } from '../engine/verdict/reason.ts'
import type { Class } from '../engine/verdict/verdict.ts'
import { getStoredPieces } from '../feedback/feedback-store.ts'
import { getAccountLoad } from '../jobs/job-list.ts'
import { DAY, SECOND } from '../platform/clock.ts'
import { isoTime } from '../platform/format.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import { getActionPolicy } from './action-policy.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import {
  ACCOUNT_BODY_MAX,
  AccountAnswer,
  OwnAccountPatch,
  patchAccount,
} from './managed-accounts.ts'
import { creditState, type RateLimitDeps, requestOrigin } from './middleware/rate-limit.ts'
import { allBuckets, limitTitle } from './middleware/rate-limit-buckets.ts'
import { encodeCursor, pageQuery, parseCursor, toPageBody } from './query.ts'
import { newRouter, route } from './route.ts'
import {
  Credits,
  HistoryPage,
  historyFilters,
  type LIMIT_NAMES,
  LIMITS_EXAMPLE,
  Limits,
  PERIODS,
  type SOURCES,
  Stats,
} from './schemas/account.ts'
import { json } from './schemas/answers.ts'

type AccountDeps = Pick<
  ApiDeps,
  'clock' | 'database' | 'guard' | 'limits' | 'random' | 'settings'
> &
  RateLimitDeps

/** Routes of the account of the key, its credits, rate limits, usage statistics and history. */
export function accountRoutes(service: AccountDeps) {
  const router = newRouter()
  router.include(ownAccountRoutes(service))
  router.include(historyRoutes(service))
  router.include(creditRoutes(service))
  router.include(limitRoutes(service))
  router.include(statsRoutes(service))
  return router
}

function ownAccountRoutes(service: AccountDeps) {
  const get = route(service, 'GET /v1/account', {
    id: 'getOwnAccount',
    summary: 'Get the account of the key',
    scope: 'account:read',
    answer: json(AccountAnswer, 'The account'),
  })
  const change = route(service, 'PATCH /v1/account', {
    id: 'updateOwnAccount',
    summary: 'Change the settings of the account',
    description:
      'Changes the name, the email address, the action policy, or whether people need a second factor. Fields that are omitted keep their values. The plan is changed by the administrator of the service.',
    scope: 'account:write',
    body: {
      schema: OwnAccountPatch,
      example: { email: 'owner@shop.example' },
      max: ACCOUNT_BODY_MAX,
    },
    answer: json(AccountAnswer, 'The account'),
    errors: ['account_exists'],
  })
  return newRouter()
    .handle(get, async c => {
      const { id } = c.get('caller').account
      // The account of the caller may be a second old.
      const account = await findAccount(service.database, id)
      if (account === null) throw accountError('account_not_found', { id })
      return c.json({ success: true as const, data: presentAccount(account) }, 200)
    })
    .handle(change, async c => {
      const data = await patchAccount(c, service, c.get('caller').account.id, c.req.valid('json'))
      return c.json({ success: true as const, data }, 200)
    })
}

function creditRoutes(service: AccountDeps) {
  const credits = route(service, 'GET /v1/credits', {
    id: 'getCredits',
    summary: "Get today's credits",
    description:
      'A new verification with a definite result costs one credit. `unknown` and cached results, malformed addresses, duplicates and the sandbox are free. If the plan has no daily limit, `credits_balance` and `credits_added` are null.',
    scope: 'account:read',
    answer: json(Credits, 'The credits'),
  })
  return newRouter().handle(credits, async c => {
    const { account, key, plan } = c.get('caller')
    const now = service.clock.now()
    const { used, held } = await readCredit(service.database, account.id, periodStart(now))
    const limit = plan.creditsPerDay
    const data = {
      account_id: account.id,
      api_key_id: key.id,
      api_key_name: key.name,
      plan: plan.name,
      credits_balance: limit === null ? null : Math.max(0, limit - used - held),
      credits_consumed: used,
      credits_held: held,
      credits_added: limit,
      period: 'day' as const,
      resets_at: isoTime(periodEnd(now)),
      last_updated: isoTime(now),
    }
    return c.json({ success: true as const, data }, 200)
  })
}

function limitRoutes(service: AccountDeps) {
  const limits = route(service, 'GET /v1/limits', {
    id: 'getLimits',
    summary: 'List all limits and their usage',
    description:
      "Returns the rate limits for this key and IP address, and the limits of the plan: daily credits, unfinished lists and stored rows. Fewer rate limits apply to admin accounts and to requests from the machine of the service. For a limit that wasn't used recently, `resets_at` is the end of a window that starts now.",
    scope: 'account:read',
    answer: json(Limits, 'The limits', LIMITS_EXAMPLE),
  })
  return newRouter().handle(limits, async c => {
    const credits = await creditState(service, c.get('caller'))
    const data = {
      limits: [
        ...(await requestLimits(c, service)),
        ...(credits === null ? [] : [presentLimit(CREDITS, credits)]),
        ...(await storageLimits(c, service)),
      ],
    }
    return c.json({ success: true as const, data }, 200)
  })
}

type LimitLabel = {
  readonly name: (typeof LIMIT_NAMES)[number]
  readonly text: string
  perMs: number
}

const CREDITS: LimitLabel = {
  name: 'credits',
  text: 'Daily verifications of your plan',
  perMs: DAY,
}

/** Returns an empty list if rate limits are off (`--limits off`). */
async function requestLimits(c: Context<Env>, service: AccountDeps) {
  const { limits, settings } = service
  if (!settings.limits) return []
  const buckets = allBuckets(c.get('caller'), requestOrigin(c, service))
  const states = await limits.read(buckets)
  return buckets.map(({ kind, perMs }, n) =>
    presentLimit({ name: kind, text: limitTitle(kind), perMs }, states[n] as BucketState),
  )
}

/** The limits of the plan on what an account stores. They apply also if rate limits are off. */
async function storageLimits(c: Context<Env>, { database }: AccountDeps) {
  const { account, plan } = c.get('caller')
  const { openLists, storedRows } = await getAccountLoad(database.reader, account.id)
  const pieces = await getStoredPieces(database.reader, account.id)
  const limits = [
    ['concurrent_jobs', 'Unfinished lists of your account', plan.concurrentJobs, openLists],
    ['stored_rows', 'Stored rows of your account', plan.storedRows, storedRows],
    ['stored_feedback', 'Stored feedback of your account', plan.storedFeedback, pieces],
  ] as const
  return limits.flatMap(([name, text, limit, used]) => {
    if (limit === null) return []
    const remaining = Math.max(0, limit - used)
    return [{ name, text, limit, remaining, window_seconds: null, resets_at: null }]
  })
}

const presentLimit = (
  { name, text, perMs }: LimitLabel,
  { limit, remaining, resetAt }: BucketState,
) => ({
  name,
  text,
  limit,
  remaining,
  window_seconds: perMs / SECOND,
  resets_at: isoTime(resetAt),
})

function statsRoutes(service: AccountDeps) {
  const stats = route(service, 'GET /v1/stats', {
    id: 'getStats',
    summary: 'Get verification counts by day and by key',
    description:
      'Returns the counts for today (UTC), or for the last 7 or 30 days including today. `previous` is the total of the same number of days before.',
    scope: 'account:read',
    query: z.object({
      period: z
        .enum(PERIODS)
        .default('day')
        .openapi({ description: 'Today, or the last 7 or 30 days.' }),
    }),
    answer: json(Stats, 'The counts'),
  })
  return newRouter().handle(stats, async c => {
    const { period } = c.req.valid('query')
    const { account } = c.get('caller')
    const to = periodEnd(service.clock.now())
    const from = to - DAYS[period] * DAY
    const before = from - DAYS[period] * DAY
    const all = await listUsage(service.database, { accountId: account.id, from: before, to })
    const usage = all.filter(({ day }) => day >= from)
    const keys = await listKeys(service.database, account.id)
    const people = await listPeople(service.database.reader, account.id)
    const names = new Map([...keys, ...people].map(({ id, name }) => [id, name]))
    const data = {
      period,
      from: isoTime(from),
      to: isoTime(to),
      total: sumUsage(usage),
      previous: sumUsage(all.filter(({ day }) => day < from)),
      days: listDays(from, to).map(day => ({
        date: isoTime(day).slice(0, 'YYYY-MM-DD'.length),
        ...sumUsage(usage.filter(row => row.day === day)),
      })),
      keys: [...new Set(usage.map(row => row.key_id))].toSorted().map(key_id => ({
        key_id,
        key_name: names.get(key_id) ?? null,
        ...sumUsage(usage.filter(row => row.key_id === key_id)),
      })),
    }
    return c.json({ success: true as const, data }, 200)
  })
}

const DAYS = { day: 1, week: 7, month: 30 } as const

const listDays = (from: number, to: number) =>
  Array.from({ length: (to - from) / DAY }, (_, n) => periodStart(from) + n * DAY)

function sumUsage(rows: readonly Usage[]) {
  const sum = {
    verifications: 0,
    cached: 0,
    credits: 0,
    deliverable: 0,
    undeliverable: 0,
    risky: 0,
    unknown: 0,
  }
  for (const row of rows) {
    sum.verifications += row.verifications
    sum.cached += row.cached
    sum.credits += row.credits
    sum[row.class as Class] += row.verifications
  }
  return sum
}

function historyRoutes(service: AccountDeps) {
  const history = route(service, 'GET /v1/history', {
    id: 'listHistory',
    summary: 'List verifications, newest first',
    description:
      'Returns one row for each verified address, for as long as the history is kept. With `X-EV-Sandbox: true`, it returns simulated verifications, otherwise live ones. With a filter, a page can be short or empty while `has_more` is true: continue with `next_cursor`.',
    scope: 'account:read',
    query: z.object({ ...pageQuery, ...historyFilters }),
    answer: json(HistoryPage, 'One page of the history'),
  })
  return newRouter().handle(history, async c => {
    const { limit, cursor, class: classes, ...filters } = c.req.valid('query')
    const { rows, next } = await getHistoryPage(service.database, {
      accountId: c.get('caller').account.id,
      sandbox: c.get('sandbox'),
      before: parseCursor(cursor),
      max: limit,
      ...omitUndefined({ ...filters, classes }),
    })
    const policy = getActionPolicy(c, service)
    const nextCursor = next === null ? null : encodeCursor(next)
    return c.json(
      toPageBody(
        rows.map(row => presentRow(row, policy)),
        nextCursor,
      ),
      200,
    )
  })
}

const presentRow = (row: Verification, policy: ActionPolicy) => ({
  id: row.id,
  email: row.email,
  valid: row.valid === 1,
  deliverable: row.deliverable === 1,
  risk_level: row.risk_level as Risk,
  reason: row.reason as Reason,
  action: decideVerdict({ reason: row.reason as Reason, risk: row.risk_level as Risk }, policy)
    .action,
  cached: row.cached === 1,
  source: row.source as (typeof SOURCES)[number],
  job_id: row.job_id,
  created_at: isoTime(row.created_at),
})
