import { z } from '@hono/zod-openapi'
import { NAME_LENGTH_MAX } from '../../accounts/name.ts'
import { pageFields } from '../cursor.ts'

// Schemas of accounts and plans, which an admin account manages.

const plan = z.string().max(100).openapi({ description: 'Name of a plan; see `GET /v1/plans`.' })
/** RFC 5321 §4.5.3.1.3: 256 octets with the angle brackets. */
const EMAIL_LENGTH_MAX = 254

const email = z.string().max(EMAIL_LENGTH_MAX).nullable().openapi({
  description: 'Receives webhook failure alerts. Null: those of the service.',
})
const admin = z.boolean().openapi({
  description: 'Whether the account can manage accounts and open the Health page.',
})

export const NewAccountRequest = z
  .strictObject({
    name: z.string().trim().min(1).max(NAME_LENGTH_MAX).openapi({ description: 'Unique name.' }),
    plan,
    email: email.default(null),
  })
  .openapi('NewAccount')

export const AccountPatchRequest = z
  .strictObject({ plan, email, admin })
  .partial()
  .openapi('AccountPatch')

const Account = z
  .object({
    id: z.string(),
    name: z.string(),
    plan,
    email,
    admin,
    created_at: z.string().openapi({ format: 'date-time' }),
  })
  .openapi('Account')

export const AccountAnswer = z
  .object({ success: z.literal(true), data: Account })
  .openapi('AccountAnswer')

export const AccountPage = z
  .object({
    success: z.literal(true),
    data: z.object({ items: z.array(Account), ...pageFields }),
  })
  .openapi('AccountPage')

const limit = z.int().nullable()

const Plan = z
  .object({
    name: z.string(),
    requests: z.int().openapi({ description: 'Requests of a key per window.' }),
    window_seconds: z.number(),
    credits_per_day: limit.openapi({ description: 'Null: unlimited.' }),
    concurrent_jobs: limit.openapi({ description: 'Unfinished lists. Null: unlimited.' }),
    stored_rows: limit.openapi({ description: 'Stored rows of all lists. Null: unlimited.' }),
  })
  .openapi('Plan')

export const PlanList = z
  .object({ success: z.literal(true), data: z.object({ plans: z.array(Plan) }) })
  .openapi('PlanList')

export const NEW_ACCOUNT_EXAMPLE = { name: 'Shop', plan: 'starter', email: 'owner@shop.example' }
export const ACCOUNT_PATCH_EXAMPLE = { plan: 'professional' }

const account = {
  ...{ id: 'acc_01', ...NEW_ACCOUNT_EXAMPLE, admin: false },
  created_at: '2026-03-21T10:30:00.000Z',
}

export const ACCOUNT_EXAMPLE = { success: true as const, data: account }
export const ACCOUNT_PAGE_EXAMPLE = {
  success: true as const,
  data: { items: [account], next_cursor: null, has_more: false },
}
export const PLAN_LIST_EXAMPLE = {
  success: true as const,
  data: {
    plans: [
      {
        ...{ name: 'free', requests: 10, window_seconds: 60, credits_per_day: 100 },
        ...{ concurrent_jobs: 10, stored_rows: 100_000 },
      },
    ],
  },
}
