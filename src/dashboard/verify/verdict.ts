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

/** A verdict: what it is, what it means, what to do, and what it rests on. */
export function verdictBody(c: Context<Env>, { form, result, kind }: Judged): Html {
  const { means, todo } = REASON_TEXTS[result.reason]
  const evidence = evidenceOf(result)
  return html`
    <p class="verdict">${badge(kind)} <b>${result.email}</b> <code>${result.reason}</code>
      ${result.sandbox ? html`<span class="badge">simulated</span>` : NOTHING}</p>
    <p>${means}</p>
    ${fault(evidence)}
    <p><b>What to do:</b> ${todo}</p>
    ${suggestion(c, form, result)} ${reply(evidence)} ${figures(result, evidence)} ${flags(result)}
    ${result.cached ? verifyForm(c, { ...form, email: result.email, again: true }, 'Ask the mail server now') : NOTHING}`
}

/** The verdict in a sentence or two, to be read out. */
export const spokenVerdict = ({ email, reason }: SingleResult, kind: Class): string =>
  `${email} is ${kind}. ${REASON_TEXTS[reason].means}`

/** Where an address is wrong, by the place in it. */
const fault = ({ syntax }: Evidence) =>
  syntax === null ? NOTHING : html`<p>${syntax.message} <small>${syntax.rule}</small></p>`

function suggestion(
  c: Context<Env>,
  form: VerifyForm,
  { did_you_mean: meant }: SingleResult,
): Html {
  if (meant === null || meant === undefined) return NOTHING
  return html`
    <div class="row suggestion"><p>Did you mean <b>${meant}</b>?</p>
    ${verifyForm(c, { ...form, email: meant, again: false }, 'Verify it')}</div>`
}

/** What the mail server said, and how that is understood. */
function reply({ answer }: Evidence): Html {
  if (answer === null) return NOTHING
  const deps = [answer.code, answer.enhanced_code, answer.text]
  const said = deps.filter(part => part !== null && part !== '').join(' ')
  const quote = said === '' ? NOTHING : html`The reply: <q class="mono">${said}</q> `
  return html`<p>${quote}${PLAIN.has(answer.why) ? NOTHING : answer.meaning}</p>`
}

/** What is said of them is what the verdict means. */
const PLAIN: ReadonlySet<string> = new Set(['recipient', 'no-mailbox', 'disabled', 'full'])

function figures(result: SingleResult, evidence: Evidence): Html {
  const { retry_after: retryAfterS } = result
  return html`
    <dl class="figures">
      ${figure('Confidence', `${result.confidence} %`)}
      ${figure('Took', formatDuration(result.response_time))}
      ${figure('Answer', originOf(result, evidence))}
      ${figure('Domain', result.provider)}
      ${figure('Operator', evidence.operator === result.provider ? null : evidence.operator)}
      ${figure('Mail host', result.mx_host)}
      ${figure('Ask again', retryAfterS === undefined ? null : `in ${formatDuration(retryAfterS * SECOND)}`)}
    </dl>`
}

/** Where the answer is from; null: nobody had to be asked. */
function originOf(result: SingleResult, { syntax }: Evidence): Html | string | null {
  if (result.sandbox || syntax !== null) return null
  return result.cached ? html`from memory, of ${time(result.checked_at ?? null)}` : 'asked now'
}

const figure = (name: string, value: Html | string | null | undefined) =>
  value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : NOTHING

const FLAG_TEXTS = {
  is_disposable: 'It belongs to a service for throw-away mail.',
  is_role: 'It belongs to a function, not to a person.',
  is_catch_all: 'Its domain takes mail for every name.',
  is_free: 'Its domain is a free mail service.',
  is_relay: 'Its domain forwards mail to an address that it hides.',
} as const

function flags({ flags }: SingleResult): Html {
  const names = Object.keys(FLAG_TEXTS) as (keyof typeof FLAG_TEXTS)[]
  const held = names.filter(name => flags?.[name] === true).map(name => FLAG_TEXTS[name])
  return held.length === 0 ? NOTHING : html`<p><small>${held.join(' ')}</small></p>`
}

/** The parts of the evidence that a page shows. */
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

/** The evidence of a result. Its fields may change, so it has no schema: what is not there is null. */
function evidenceOf({ evidence }: SingleResult): Evidence {
  return { operator: null, syntax: null, answer: null, ...evidence }
}
