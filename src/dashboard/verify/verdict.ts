import type { Context } from 'hono'
import { html } from 'hono/html'
import type { SingleResult } from '../../client/types.ts'
import { REASON_TEXTS } from '../../engine/verdict/reason.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { badge, time } from '../page/text.ts'
import { verifyForm } from './ask-form.ts'
import type { VerifyForm } from './verify-events.ts'

type Judged = { readonly form: VerifyForm; readonly result: SingleResult; readonly kind: Class }

/** Renders a verdict: class, meaning, recommendation and evidence. */
export function verdictBody(c: Context<Env>, { form, result, kind }: Judged): Html {
  const { means, todo } = REASON_TEXTS[result.reason]
  const evidence = evidenceOf(result)
  return html`
    <p class="verdict">${badge(kind)} <b>${result.email}</b> <code>${result.reason}</code>
      ${result.sandbox ? html`<span class="badge">Simulated</span>` : NOTHING}</p>
    <p>${means}</p>
    ${fault(evidence)}
    <p><b>What to do:</b> ${todo}</p>
    ${suggestion(c, form, result)} ${reply(evidence)} ${figures(result, evidence)} ${flags(result)}
    ${result.cached ? verifyForm(c, { ...form, email: result.email, again: true }, 'Verify again now') : NOTHING}`
}

/** Returns the verdict as text for screen readers. */
export const spokenVerdict = ({ email, reason }: SingleResult, kind: Class): string =>
  `${email} is ${kind}. ${REASON_TEXTS[reason].means}`

/** Renders the syntax error of an address and its rule. */
const fault = ({ syntax }: Evidence) =>
  syntax === null ? NOTHING : html`<p>${syntax.message} <small>${syntax.rule}</small></p>`

function suggestion(
  c: Context<Env>,
  form: VerifyForm,
  { did_you_mean: suggested }: SingleResult,
): Html {
  if (suggested === null || suggested === undefined) return NOTHING
  return html`
    <div class="row suggestion"><p>Did you mean <b>${suggested}</b>?</p>
    ${verifyForm(c, { ...form, email: suggested, again: false }, 'Verify suggestion')}</div>`
}

/** Renders the reply of the mail server and its interpretation. */
function reply({ answer }: Evidence): Html {
  if (answer === null) return NOTHING
  const parts = [answer.code, answer.enhanced_code, answer.text]
  const text = parts.filter(part => part !== null && part !== '').join(' ')
  const quote = text === '' ? NOTHING : html`Reply: <q class="mono">${text}</q> `
  return html`<p>${quote}${PLAIN.has(answer.why) ? NOTHING : answer.meaning}</p>`
}

/** Outcomes whose meaning repeats the verdict. */
const PLAIN: ReadonlySet<string> = new Set(['recipient', 'no-mailbox', 'disabled', 'full'])

function figures(result: SingleResult, evidence: Evidence): Html {
  const { retry_after: retryAfterS } = result
  return html`
    <dl class="figures">
      ${figure('Confidence', `${result.confidence} %`)}
      ${figure('Duration', formatDuration(result.response_time))}
      ${figure('Source', originOf(result, evidence))}
      ${figure('Domain', result.provider)}
      ${figure('Operator', evidence.operator === result.provider ? null : evidence.operator)}
      ${figure('Mail host', result.mx_host)}
      ${figure('Retry', retryAfterS === undefined ? null : `in ${formatDuration(retryAfterS * SECOND)}`)}
    </dl>`
}

/** Returns whether the result is cached; null if no mail server was needed. */
function originOf(result: SingleResult, { syntax }: Evidence): Html | string | null {
  if (result.sandbox || syntax !== null) return null
  return result.cached ? html`cached ${time(result.checked_at ?? null)}` : 'mail server'
}

const figure = (name: string, value: Html | string | null | undefined) =>
  value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : NOTHING

const FLAG_TEXTS = {
  is_disposable: 'Disposable address.',
  is_role: 'Role address, not a person.',
  is_catch_all: 'Catch-all domain: accepts mail for every local part.',
  is_free: 'Free mail provider.',
  is_relay: 'Relay address: forwards mail to a hidden address.',
} as const

function flags({ flags }: SingleResult): Html {
  const names = Object.keys(FLAG_TEXTS) as (keyof typeof FLAG_TEXTS)[]
  const texts = names.filter(name => flags?.[name] === true).map(name => FLAG_TEXTS[name])
  return texts.length === 0 ? NOTHING : html`<p><small>${texts.join(' ')}</small></p>`
}

/** The fields of the evidence that the page shows. */
type Evidence = {
  readonly operator: string | null
  readonly syntax: { readonly message: string; readonly rule: string } | null
  readonly answer: {
    readonly why: string
    readonly code: number | null
    readonly enhanced_code: string | null
    readonly text: string
    readonly meaning: string
  } | null
}

/** Reads the evidence of a result. It has no fixed schema, so missing fields are null. */
function evidenceOf({ evidence }: SingleResult): Evidence {
  return { operator: null, syntax: null, answer: null, ...evidence }
}
