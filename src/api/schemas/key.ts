import { z } from '@hono/zod-openapi'
import {
  RESTRICTIONS_MAX,
  readAllowedDomain,
  readAllowedIp,
} from '../../accounts/key-restrictions.ts'
import { KEY_GRACE_MAX_MS, KEY_GRACE_MS, KEY_RATE_MAX } from '../../accounts/keys.ts'
import { NAME_LENGTH_MAX } from '../../accounts/name.ts'
import { SCOPES } from '../../accounts/scope.ts'
import { SECOND } from '../../platform/clock.ts'

// Keys as they are asked for and shown.

const time = z.string().openapi({ format: 'date-time' })

const scopes = z
  .array(z.enum(SCOPES))
  .min(1)
  .transform(given => [...new Set(given)])
  .openapi({
    type: 'array',
    items: { type: 'string', enum: [...SCOPES] },
    minItems: 1,
    description:
      'What it may do; `*` is everything. Nothing that the asking key may not do itself.',
  })

/** Entries are kept as `read` gives them; null: it is none. */
const entries = (read: (text: string) => string | null, fault: string, description: string) =>
  z
    .array(
      z
        .string()
        .max(300)
        .transform((text, ctx) => {
          const entry = read(text)
          if (entry !== null) return entry
          ctx.addIssue({ code: 'custom', message: fault })
          return z.NEVER
        }),
    )
    .max(RESTRICTIONS_MAX)
    .openapi({
      type: 'array',
      items: { type: 'string' },
      maxItems: RESTRICTIONS_MAX,
      description,
    })

const allowed_ips = entries(
  readAllowedIp,
  'must be an IP address or a CIDR, such as 203.0.113.0/24',
  'Client addresses that may use it, and CIDRs; empty: any.',
)

const allowed_domains = entries(
  readAllowedDomain,
  'must be a domain, such as app.example.com',
  'Web sites that may use it from a browser, with what lies below them; empty: any.',
)

const settings = {
  name: z.string().trim().min(1).max(NAME_LENGTH_MAX).openapi({ description: 'For people.' }),
  scopes,
  allowed_ips,
  allowed_domains,
  rate_limit_per_minute: z.int().min(1).max(KEY_RATE_MAX).nullable().openapi({
    description: 'A limit of its own, beside the one of the plan; null: none.',
  }),
  expires_at: z.iso.datetime({ offset: true }).nullable().openapi({
    description: 'From then on it opens nothing; null: it does not expire.',
  }),
}

export const NewKeyRequest = z
  .strictObject({
    name: settings.name,
    scopes: settings.scopes,
    allowed_ips: settings.allowed_ips.optional(),
    allowed_domains: settings.allowed_domains.optional(),
    rate_limit_per_minute: settings.rate_limit_per_minute.optional(),
    expires_at: settings.expires_at.optional(),
  })
  .openapi('NewKey')

export const KeyPatchRequest = z.strictObject(settings).partial().openapi('KeyPatch')

const GRACE_S_MAX = KEY_GRACE_MAX_MS / SECOND
const GRACE_S_USUAL = KEY_GRACE_MS / SECOND

export const RotateRequest = z
  .strictObject({
    grace_period_seconds: z.int().min(0).max(GRACE_S_MAX).default(GRACE_S_USUAL).openapi({
      description: 'For how long the text that it has goes on.',
    }),
  })
  .openapi('KeyRotation')

/** Why it is not deleted. */
export const LAST_KEY =
  'This is the last key of the account that is in use: delete it with force=true, or create another key first'

export const KeyDeletionQuery = z.object({
  force: z.enum(['true', 'false']).optional().openapi({
    description:
      'true: deletes the last key of the account too. No request to the API can create another one then.',
  }),
})

const head = {
  id: z.string(),
  name: z.string(),
  prefix: z.string().openapi({ description: 'Its first characters.' }),
}

const rest = {
  hint: z.string().openapi({ description: 'Its last characters.' }),
  scopes: z.array(z.enum(SCOPES)),
  allowed_ips: z.array(z.string()),
  allowed_domains: z.array(z.string()),
  rate_limit_per_minute: z.int().nullable(),
  created_at: time,
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
}

const Key = z.object({ ...head, ...rest }).openapi('Key')

const keyWithText = {
  ...head,
  key: z.string().openapi({ description: 'Its text, shown this once.' }),
  ...rest,
}

export const KeyAnswer = z.object({ success: z.literal(true), data: Key }).openapi('KeyAnswer')

export const KeyList = z
  .object({
    success: z.literal(true),
    data: z.object({ keys: z.array(Key), total: z.int().min(0) }),
  })
  .openapi('KeyList')

export const CreatedKey = z
  .object({ success: z.literal(true), data: z.object(keyWithText) })
  .openapi('CreatedKey')

export const RotatedKey = z
  .object({
    success: z.literal(true),
    data: z.object({
      ...keyWithText,
      previous_key_expires_at: time.openapi({ description: 'The end of the text before.' }),
    }),
  })
  .openapi('RotatedKey')

const named = { id: 'key_01', name: 'CI', prefix: 'ev_live_a1b2' }
const limited = {
  hint: 'k2p4',
  scopes: ['verify:single' as const, 'verify:bulk' as const],
  ...{ allowed_ips: ['203.0.113.0/24'], allowed_domains: [], rate_limit_per_minute: null },
  ...{ created_at: '2026-03-21T10:30:00.000Z', expires_at: null, last_used_at: null },
}

const shown = { ...named, ...limited }
const shownWithText = {
  ...named,
  key: 'ev_live_a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6x9k2p4',
  ...limited,
}

export const NEW_KEY_EXAMPLE = {
  name: 'CI',
  scopes: ['verify:single' as const, 'verify:bulk' as const],
  allowed_ips: ['203.0.113.0/24'],
}

export const KEY_EXAMPLE = { success: true as const, data: shown }
export const KEY_LIST_EXAMPLE = { success: true as const, data: { keys: [shown], total: 1 } }
export const CREATED_KEY_EXAMPLE = { success: true as const, data: shownWithText }
export const ROTATED_KEY_EXAMPLE = {
  success: true as const,
  data: { ...shownWithText, previous_key_expires_at: '2026-03-22T10:30:00.000Z' },
}
