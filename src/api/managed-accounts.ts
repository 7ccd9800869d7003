import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import {
  type Account,
  findAccount,
  getAccountPage,
  presentAccount,
} from '../accounts/account-store.ts'
import { type AccountActor, changeAccount, createAccount } from '../accounts/accounts.ts'
import { accountError } from '../accounts/errors.ts'
import { NAME_LENGTH_MAX } from '../accounts/name.ts'
import { ACTION_POLICIES } from '../engine/verdict/action.ts'
import { SECOND } from '../platform/clock.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import { addKey, KEY_BODY_MAX, type KeyDeps, ownRights } from './keys.ts'
import { answerWith, type IdempotencyDeps } from './middleware/idempotency.ts'
import { pageQuery, parseCursor, toPage, toPageBody } from './query.ts'
import { withOrigin } from './request-context.ts'
import { newRouter, route } from './route.ts'
import { json, pageBody, successBody } from './schemas/answers.ts'
import { idParams, time } from './schemas/fields.ts'
import { CreatedKey, NEW_KEY_EXAMPLE, NewKeyRequest } from './schemas/key.ts'

type ManagedAccountDeps = Pick<ApiDeps, 'database' | 'guard' | 'random' | 'settings'> &
  KeyDeps &
  IdempotencyDeps

// Schemas of accounts and plans, which an admin account manages.

const plan = z.string().max(100).openapi({
  description: 'Name of a plan; see `GET /v1/plans`.',
  example: 'starter',
})
/** RFC 5321 §4.5.3.1.3: 256 octets with the angle brackets. */
const EMAIL_LENGTH_MAX = 254

const email = z.string().max(EMAIL_LENGTH_MAX).nullable().openapi({
  description:
    'Email address for alerts about failing webhooks, and for finished lists that were submitted with `notify`. If null, the address of the service receives the alerts.',
  example: 'owner@shop.example',
})
const admin = z.boolean().openapi({
  description: 'Whether the account can manage accounts and open the Health page.',
  example: false,
})

const actionPolicy = z.enum(ACTION_POLICIES).nullable().openapi({
  description:
    'Decides about `action` in results: `balanced`, `strict` or `lenient`. If null, the policy of the service does.',
  example: 'balanced',
})

const twoFactorRequired = z.boolean().openapi({
  description:
    'Whether people who sign in to the dashboard with a password need a second factor. Those without one can only set one up then, and API keys cannot sign in. The identity provider asks for its own second factor.',
  example: false,
})

const name = z
  .string()
  .trim()
  .min(1)
  .max(NAME_LENGTH_MAX)
  .openapi({ description: 'Unique name.', example: 'Shop' })

const NewAccountRequest = z
  .strictObject({
    name,
    plan,
    email: email.default(null),
  })
  .openapi('NewAccount')

const AccountPatchRequest = z
  .strictObject({
    name,
    plan,
    email,
    admin,
    action_policy: actionPolicy,
    two_factor_required: twoFactorRequired,
  })
  .partial()
  .openapi('AccountPatch')

/** The fields of its own account that a key may change. */
export const OwnAccountPatch = AccountPatchRequest.omit({ plan: true, admin: true }).openapi(
  'OwnAccountPatch',
)

const AccountSchema = z
  .object({
    id: z.string().openapi({ example: 'acc_01' }),
    name: z.string().openapi({ example: 'Shop' }),
    plan,
    email,
    admin,
    action_policy: actionPolicy,
    two_factor_required: twoFactorRequired,
    created_at: time,
  })
  .openapi('Account')

export const AccountAnswer = successBody(AccountSchema).openapi('AccountAnswer')

const AccountPage = pageBody(AccountSchema).openapi('AccountPage')

const limit = (description: string, example: number) =>
  z.int().nullable().openapi({ description, example })

const Plan = z
  .object({
    name: z.string().openapi({ example: 'free' }),
    requests: z.int().openapi({
      description: 'Requests that an account can send per window, with all of its keys together.',
      example: 10,
    }),
    window_seconds: z.number().openapi({ example: 60 }),
    credits_per_day: limit('Null: unlimited.', 100),
    concurrent_jobs: limit('Lists that can be unfinished at the same time. Null: unlimited.', 10),
    stored_rows: limit('Stored rows of all lists. Null: unlimited.', 100_000),
    stored_feedback: limit('Stored bounces, deliveries and complaints. Null: unlimited.', 100_000),
    keys: limit('API keys that are not revoked. Null: 500.', 10),
  })
  .openapi('Plan')

const PlanList = successBody(z.object({ plans: z.array(Plan) })).openapi('PlanList')

const ADMIN_ONLY = 'Requires a key of an admin account.'

/** Fits a name and an address. */
export const ACCOUNT_BODY_MAX = 16 * 1024

/** Routes with which an admin account manages all accounts. */
export function managedAccountRoutes(service: ManagedAccountDeps) {
  const { database, settings } = service
  const router = newRouter()

  const list = route(service, 'GET /v1/accounts', {
    id: 'listAccounts',
    summary: 'List accounts, newest first',
    description: ADMIN_ONLY,
    scope: 'accounts:write',
    query: z.object(pageQuery),
    answer: json(AccountPage, 'One page of the accounts'),
  })
  router.handle(list, async c => {
    const { limit, cursor } = c.req.valid('query')
    const found = await getAccountPage(database, { after: parseCursor(cursor), max: limit + 1 })
    const { rows, next } = toPage(found, limit)
    return c.json(toPageBody(rows.map(presentAccount), next), 200)
  })

  const create = route(service, 'POST /v1/accounts', {
    id: 'createAccount',
    summary: 'Create an account',
    description: `${ADMIN_ONLY} The new account has no keys: create one with \`POST /v1/accounts/{id}/keys\`.`,
    scope: 'accounts:write',
    idempotent: true,
    body: {
      schema: NewAccountRequest,
      example: { email: 'owner@shop.example' },
      max: ACCOUNT_BODY_MAX,
    },
    answer: json(AccountAnswer, 'The account'),
    status: 201,
    headers: ['Location'],
    errors: ['account_exists'],
  })
  router.handle(create, c => {
    const input = c.req.valid('json')
    const services = { ...withOrigin(c, service), plans: settings.plans }
    return answerWith<Account>(
      c,
      service,
      beforeCommit => createAccount(services, { ...input, actor: getActor(c) }, beforeCommit),
      account => ({
        status: 201,
        body: { success: true, data: presentAccount(account) },
        headers: { Location: `/v1/accounts/${account.id}` },
      }),
    )
  })

  const get = route(service, 'GET /v1/accounts/{id}', {
    id: 'getAccount',
    summary: 'Get an account',
    description: ADMIN_ONLY,
    scope: 'accounts:write',
    params,
    answer: json(AccountAnswer, 'The account'),
  })
  router.handle(get, async c => {
    const data = presentAccount(await existing(c.req.valid('param').id))
    return c.json({ success: true as const, data }, 200)
  })

  const change = route(service, 'PATCH /v1/accounts/{id}', {
    id: 'updateAccount',
    summary: 'Update an account',
    description: `${ADMIN_ONLY} Fields that you omit keep their values. A new plan applies within a second.`,
    scope: 'accounts:write',
    params,
    body: { schema: AccountPatchRequest, example: { plan: 'professional' }, max: ACCOUNT_BODY_MAX },
    answer: json(AccountAnswer, 'The account'),
    errors: ['account_exists'],
  })
  router.handle(change, async c => {
    const data = await patchAccount(c, service, c.req.valid('param').id, c.req.valid('json'))
    return c.json({ success: true as const, data }, 200)
  })

  const key = route(service, 'POST /v1/accounts/{id}/keys', {
    id: 'createAccountKey',
    summary: 'Create an API key for an account',
    description: `${ADMIN_ONLY} Works like \`POST /v1/keys\`. The new key can't have more permissions than the calling key.`,
    scope: 'accounts:write',
    idempotent: true,
    params,
    body: { schema: NewKeyRequest, example: NEW_KEY_EXAMPLE, max: KEY_BODY_MAX },
    answer: json(CreatedKey, 'The key'),
    status: 201,
    optionalHeaders: ['Location'],
  })
  router.handle(key, async c => {
    const { id } = await existing(c.req.valid('param').id)
    return addKey(c, service, { ...c.req.valid('json'), accountId: id })
  })

  const plans = route(service, 'GET /v1/plans', {
    id: 'listPlans',
    summary: 'List the plans',
    description: `${ADMIN_ONLY} Returns the built-in plans and those of the config file.`,
    scope: 'accounts:write',
    answer: json(PlanList, 'The plans'),
  })
  router.handle(plans, c => {
    const all = [...settings.plans.values()].map(plan => ({
      name: plan.name,
      requests: plan.requests,
      window_seconds: plan.perMs / SECOND,
      credits_per_day: plan.creditsPerDay,
      concurrent_jobs: plan.concurrentJobs,
      stored_rows: plan.storedRows,
      stored_feedback: plan.storedFeedback,
      keys: plan.keys,
    }))
    return c.json({ success: true as const, data: { plans: all } }, 200)
  })

  async function existing(id: string): Promise<Account> {
    const account = await findAccount(database, id)
    if (account === null) throw accountError('account_not_found', { id })
    return account
  }

  return router
}

/** Changes an account and returns its JSON form. */
export async function patchAccount(
  c: Context<Env>,
  service: Pick<ApiDeps, 'clock' | 'database' | 'random' | 'settings'>,
  accountId: string,
  { admin, action_policy, two_factor_required, ...fields }: z.output<typeof AccountPatchRequest>,
) {
  const services = { ...withOrigin(c, service), plans: service.settings.plans }
  const account = await changeAccount(services, {
    ...fields,
    isAdmin: admin,
    actionPolicy: action_policy,
    isTwoFactorRequired: two_factor_required,
    accountId,
    actor: getActor(c),
  })
  return presentAccount(account)
}

/** Returns the key that makes the request, and the plan of its account. */
function getActor(c: Context<Env>): AccountActor {
  const caller = c.get('caller')
  return { key: ownRights(caller), plan: caller.plan }
}

const params = idParams('ID of the account.', 'acc_01')
