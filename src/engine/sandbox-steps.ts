import { type Address, isFault } from './address/address.ts'
import { suggestForSyntaxError } from './address/suggestion.ts'
import type { Route } from './dns/route.ts'
import type { Step } from './step.ts'
import { domainStep, syntaxStep } from './step-observer.ts'
import type { Reason } from './verdict/reason.ts'
import type { Result } from './verdict/verdict.ts'

/** Returns the steps that a real verification with this result would have had. */
export function sandboxSteps({ email, evidence, verdict }: Result): Step[] {
  const { address } = evidence
  if (isFault(address)) return [syntaxStep(address, suggestForSyntaxError(email))]
  const syntax = syntaxStep(address, null)
  const { reason } = verdict
  if (address.domain.kind === 'literal' || reason === 'unexpected_error') return [syntax]
  const host = `mx.${address.domain.ascii}`
  const route: Route = NO_MAIL.has(reason)
    ? { kind: 'no-mail' }
    : { kind: 'mx', hosts: [{ preference: 10, host }] }
  const reply = RCPT_REPLIES[reason]
  return [
    syntax,
    simulated(domainStep(address.domain, route, null)),
    ...(reply === undefined ? [] : sessionSteps(address, host, reply)),
  ]
}

const NO_MAIL: ReadonlySet<Reason> = new Set(['no_mx_record'])

/** The reply to RCPT for each reason that comes from a server; null: no reply. */
const RCPT_REPLIES: Readonly<Partial<Record<Reason, string | null>>> = {
  accepted_email: '250 2.1.5 Ok',
  role_account: '250 2.1.5 Ok',
  possible_typo: '250 2.1.5 Ok',
  catch_all: '250 2.1.5 Ok',
  low_deliverability: '252 2.1.5 Cannot verify the user, will try to deliver',
  rejected_email: '550 5.1.1 No such user',
  mailbox_full: '452 4.2.2 Mailbox full',
  greylisted: '450 4.2.0 Greylisted, try again in 300 seconds',
  unavailable_smtp: '451 4.3.0 Try again later',
  probe_blocked: '554 5.7.1 Your address is on a block list',
  timeout: null,
}

function sessionSteps(address: Address, host: string, reply: string | null): Step[] {
  const replyLines = reply === null ? [] : [`S: ${reply}`]
  const lines = [
    `C: MAIL FROM:<>`,
    'S: 250 2.1.0 Ok',
    `C: RCPT TO:<${address.text}>`,
    ...replyLines,
  ]
  return [
    simulated({ kind: 'server', ok: true, host, ip: null, text: `${host} answers.` }),
    ...lines.map((text): Step => ({ kind: 'line', text })),
  ]
}

const simulated = (step: Step): Step => ({ ...step, text: `Simulated: ${step.text}` })
