import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { parseAddress } from '../../engine/address/address.ts'
import { suggestAddress } from '../../engine/address/suggestion.ts'
import { ACTIONS, type ActionPolicy, decideVerdict } from '../../engine/verdict/action.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { type Class, type Result, toClass } from '../../engine/verdict/verdict.ts'
import { SECOND } from '../../platform/clock.ts'
import { type ActionPolicyDeps, getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { type HeaderDeps, restrictOrigin } from '../headers.ts'
import { unchecked } from '../middleware/idempotency.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import { email } from '../schemas/verify.ts'
import { type AskDeps, answerOne, readEmail, SINGLE_BODY_MAX } from './ask.ts'
import { simulatedError } from './sandbox.ts'

export type FormDeps = Pick<ApiDeps, 'guard'> & HeaderDeps & AskDeps & ActionPolicyDeps

// Schemas of verifications for forms.

const FormRequest = z.strictObject({ email }).openapi('FormRequest', { required: ['email'] })

const FormResult = z
  .object({
    email: z.string().openapi({ description: 'The address, as sent.', example: 'ann@gmial.com' }),
    class: z
      .enum(['deliverable', 'risky', 'undeliverable', 'unknown'])
      .openapi({ example: 'undeliverable' }),
    allow: z.boolean().openapi({
      description: 'Whether the form should accept the address. False only if it is undeliverable.',
      example: false,
    }),
    action: z.enum(ACTIONS).openapi({
      description:
        'What to do with the address, by the action policy of the account, if the form accepts it.',
      example: 'suppress',
    }),
    did_you_mean: z.string().nullable().openapi({
      description: 'Suggested address, if the domain looks misspelled. Otherwise null.',
      example: 'ann@gmail.com',
    }),
    message: z.string().openapi({
      description: 'Message for the visitor.',
      example: 'Did you mean ann@gmail.com?',
    }),
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
  })
  .openapi('FormResult')

/** A visitor does not wait longer for a form; the result is unknown then. */
export const FORM_DEADLINE_MS = 5 * SECOND

/** `POST /v1/verify/form`: one address for a form, without any evidence. */
async function verifyForm(c: Context<Env>, service: FormDeps, given: unknown): Promise<Response> {
  const email = readEmail(given)
  const address = parseAddress(email)
  const sandbox = c.get('sandbox')
  const simulated = simulatedError(c, address)
  if (simulated !== null) return simulated
  const input = {
    email,
    address,
    checkSmtp: true,
    forceRefresh: false,
    deadlineMs: FORM_DEADLINE_MS,
  }
  return answerOne(c, service, input, result => ({
    ...presentForm(result, getActionPolicy(c, service)),
    ...(sandbox && { sandbox }),
  }))
}

/**
 * Any visitor can send requests with a publishable key, so the answer says nothing else, and no
 * complaint decides about the action.
 */
function presentForm({ email, verdict, evidence }: Result, policy: ActionPolicy) {
  const { reason } = verdict
  const resultClass = toClass(verdict)
  const known = evidence.suggestion
  const suggestion = resultClass === 'unknown' ? (known ?? suggestAddress(email)) : known
  return {
    email,
    class: resultClass,
    allow: resultClass !== 'undeliverable',
    action: decideVerdict(verdict, policy).action,
    did_you_mean: suggestion,
    message:
      suggestion === null
        ? (BY_REASON[reason] ?? BY_CLASS[resultClass])
        : `Did you mean ${suggestion}?`,
  }
}

const BY_CLASS: Readonly<Record<Class, string>> = {
  deliverable: 'This address can receive mail.',
  risky: 'Mail to this address may not arrive.',
  undeliverable: 'This address cannot receive mail. Check it for typos.',
  unknown: 'This address could not be checked.',
}

/** Sentences that tell a visitor what to change. */
const BY_REASON: Readonly<Partial<Record<Reason, string>>> = {
  invalid_email: 'This is not a complete email address. Write it as name@example.com.',
  disposable_email: 'This is a disposable address. Use a permanent one.',
  mailbox_full: 'This mailbox is full. Use another address.',
}

/** Routes for forms on websites. */
export function formRoutes(service: FormDeps) {
  const form = route(service, 'POST /v1/verify/form', {
    id: 'verifyForm',
    summary: 'Verify the address of a form',
    description: `For web pages with a publishable key, such as those with the script \`/form.js\`. After ${FORM_DEADLINE_MS / SECOND} seconds, the result is \`unknown\`. If the request fails, accept the address. Only pages on \`allowed_domains\` can read the response.`,
    scope: 'verify:form',
    counts: 'form',
    body: {
      schema: FormRequest,
      example: { email: 'ann@gmial.com' },
      max: SINGLE_BODY_MAX,
      freeMax: SINGLE_BODY_MAX,
    },
    answer: json(FormResult, 'The result'),
    errors: ['invalid_email', 'quota_exceeded'],
    beforeKey: restrictOrigin(service),
  })
  return newRouter().handle(form, c => unchecked(verifyForm(c, service, c.req.valid('json').email)))
}
