import { EvApiError, EvConnectionError } from '../client/error.ts'
import { isOutage } from '../db/postgres/errors.ts'
import { type ErrorCode, EvError, errorMessage } from '../platform/error.ts'
import { formatNumber, pluralize } from '../platform/format.ts'
import {
  describeOperation,
  OperationError,
  type OperationTexts,
} from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { printMessage, timeText } from './print.ts'

/** Exit codes by error code, from sysexits.h where it defines one. */
export const EXIT_CODES: Readonly<Record<ErrorCode, number>> = {
  usage: 64,
  bad_address: 65,
  bad_input: 65,
  no_input: 66,
  internal: 70,
  cannot_write: 73,
  io: 74,
  bad_config: 78,
  interrupted: 130,
}

/** Prints an error to stderr, with its stack when debugging, and returns the exit code. */
export function reportError(context: CliContext, thrown: unknown, debug: boolean): number {
  const error = toEvError(thrown)
  printMessage(context, 'error', error.message)
  if (debug) {
    context.stderr.write(`${error.stack}\n`)
    if (error.cause !== undefined) context.stderr.write(`caused by: ${stackOf(error.cause)}\n`)
  }
  return EXIT_CODES[error.code]
}

function toEvError(thrown: unknown): EvError {
  if (thrown instanceof EvError) return thrown
  if (thrown instanceof OperationError) return operationSentence(thrown)
  return serviceFault(thrown) ?? databaseFault(thrown) ?? internalFault(thrown)
}

/** The exit codes of errors of a service that the status does not tell. */
const SERVICE_CODES: Readonly<Record<string, ErrorCode>> = {
  invalid_email: 'bad_address',
  list_empty: 'bad_input',
}

/** Converts the errors of a command that runs on a service. */
function serviceFault(thrown: unknown): EvError | null {
  if (thrown instanceof EvConnectionError) {
    const sentence = `The service did not respond: ${sanitizeText(thrown.message, 500)} Check --url.`
    return new EvError('io', sentence, { cause: thrown })
  }
  if (!(thrown instanceof EvApiError)) return null
  const { status, requestId } = thrown
  const id = requestId === null || status < 500 ? '' : ` Request ${sanitizeText(requestId)}.`
  const sentence = `${sanitizeText(thrown.message, 500)}${SERVICE_REMEDIES[status] ?? ''}${id}`
  const code = SERVICE_CODES[thrown.code ?? ''] ?? codeOfStatus(status)
  return new EvError(code, sentence, { cause: thrown })
}

const SERVICE_REMEDIES: Readonly<Record<number, string>> = {
  401: ' Check EV_KEY, --key-file or --key.',
}

/** The key belongs to the configuration; a limit or a failure of the service may pass. */
function codeOfStatus(status: number): ErrorCode {
  if (status === 401 || status === 403) return 'bad_config'
  if (status === 404 || status === 410) return 'no_input'
  return status === 429 || status >= 500 || status < 400 ? 'io' : 'usage'
}

/** Converts database failures: a full disk, a damaged file, a lock that is never released. */
function databaseFault(thrown: unknown): EvError | null {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (isOutage(thrown)) {
    const sentence = `The database is not available: ${errorMessage(thrown)}. Check that its server is running and reachable from this machine, for example with "ev doctor", and try again.`
    return new EvError('io', sentence, { cause: thrown })
  }
  if (!code.startsWith('SQLITE_')) return null
  const remedy = /^SQLITE_(CORRUPT|NOTADB)/.test(code)
    ? 'The file is damaged: move it away, or set another directory with --data-dir.'
    : 'Fix the cause and run the same command again to resume. All stored results are kept.'
  const sentence = `The database failed: ${errorMessage(thrown)}. ${remedy}`
  return new EvError('io', sentence, { cause: thrown })
}

const internalFault = (cause: unknown) =>
  new EvError(
    'internal',
    `Internal error: ${errorMessage(cause)}. Please report it with the output of --debug.`,
    { cause },
  )

const stackOf = (cause: unknown) => (cause instanceof Error ? cause.stack : String(cause))

/**
 * Exits when the output cannot be written because its reader has closed the pipe or the disk is
 * full. Returns a function that removes these listeners and those that a command has added since.
 */
export function watchOutput(context: CliContext, debug: boolean): () => void {
  const { stdout, stderr } = context
  const before = new Set([...stdout.listeners('error'), ...stderr.listeners('error')])
  const endRun = (cause: NodeJS.ErrnoException) => {
    // In `ev … | head -1` the reader closes the pipe on purpose, so this needs no message.
    if (cause.code === 'EPIPE') context.exit(EXIT_CODES.io)
    const sentence = `The output cannot be written: ${errorMessage(cause)}. Write it to another place. Stored results of a list are kept.`
    context.exit(reportError(context, new EvError('cannot_write', sentence, { cause }), debug))
  }
  // A command continues when its progress output has no reader.
  const ignore = () => {}
  stdout.on('error', endRun)
  stderr.on('error', ignore)
  return () => {
    for (const output of [stdout, stderr]) {
      for (const listener of output.listeners('error')) {
        if (!before.has(listener)) output.off('error', listener as (cause: Error) => void)
      }
    }
  }
}

/** Messages and exit codes of expected errors on the command line. */
const SENTENCES: OperationTexts<EvError> = {
  webhook_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `Webhook ${sanitizeText(id)} does not exist. To list webhooks, run "ev webhooks".`,
    ),
  webhook_disabled: ({ id }) =>
    new EvError(
      'usage',
      `Webhook ${id} is disabled, so nothing is sent to it. Enable it first: ev webhooks enable ${id}`,
    ),
  webhook_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${formatNumber(count)} webhooks, which is the maximum. To create another one, first delete one with "ev webhooks delete".`,
    ),
  webhook_url_rejected: ({ url, fault, isPrivate }) =>
    new EvError(
      'usage',
      `--url is "${sanitizeText(url, 100)}", which is not allowed. ${fault}${isPrivate ? PRIVATE_HINT : ''}`,
    ),
  webhook_header_rejected: ({ name, fault }) =>
    new EvError('usage', `The header "${sanitizeText(name, 100)}" is not allowed. ${fault}`),
  webhook_test_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${pluralize(count, 'test event')} in flight, which is the maximum. Try again in a minute.`,
    ),
  delivery_not_found: ({ id, webhookId }) =>
    new EvError(
      'no_input',
      `Delivery ${sanitizeText(id)}${webhookId === null ? '' : ` of webhook ${sanitizeText(webhookId)}`} does not exist. To list deliveries, run "ev webhooks deliveries ${webhookId === null ? 'WEBHOOK' : sanitizeText(webhookId)}". Completed deliveries are kept for seven days.`,
    ),
  feedback_source_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `Feedback source ${sanitizeText(id)} does not exist. To list them, run "ev feedback sources".`,
    ),
  feedback_source_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${formatNumber(count)} feedback sources, which is the maximum. To create another one, first delete one with "ev feedback sources delete".`,
    ),
  feedback_key_rejected: ({ title, keyName, expected }) =>
    new EvError(
      'usage',
      expected === null
        ? `${title} has no key, so ev creates a password. Omit --key.`
        : `${title} needs a key. Set --key to the ${keyName}, ${expected}.`,
    ),
  feedback_request_rejected: ({ fault }) => new EvError('bad_input', fault),
  name_invalid: ({ name, of, lengthMax }) =>
    new EvError(
      'usage',
      `--name is "${sanitizeText(name)}"; the name of ${of === 'account' ? 'an account' : `a ${of}`} takes 1 to ${lengthMax} characters on one line.`,
    ),
  person_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `Person ${sanitizeText(id)} does not exist. To list people, run "ev people".`,
    ),
  person_exists: ({ email }) =>
    new EvError(
      'usage',
      `The account has a person with the address ${email}. For a new link, run "ev people link ${email}".`,
    ),
  person_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${count} people, which is the maximum. Remove one first.`,
    ),
  person_rights_exceeded: ({ role }) =>
    new EvError('usage', `The role "${role}" has more rights than the caller.`),
  own_person: () => new EvError('usage', 'People cannot remove themselves or change their role.'),
  key_not_found: ({ id }) =>
    new EvError('no_input', `Key ${sanitizeText(id)} does not exist. To list keys, run "ev keys".`),
  key_limit_reached: ({ count, max, plan }) =>
    new EvError(
      'usage',
      `The account has ${pluralize(count, 'key')}, and ${planText(plan)} allows ${formatNumber(max)}. Revoke unused keys with "ev keys revoke", or change the plan with "ev accounts set-plan".`,
    ),
  account_rights_exceeded: ({ field }) =>
    new EvError('usage', `The key is not allowed to set "${field}" of an account.`),
  domains_required: () =>
    new EvError(
      'usage',
      'A publishable key needs --allow-domain with the domains of its websites, such as shop.example.com.',
    ),
  scopes_fixed: () => new EvError('usage', 'The scopes of a publishable key cannot be changed.'),
  last_key: ({ id, accountName }) =>
    new EvError(
      'usage',
      `${id} is the last key of account ${sanitizeText(accountName)}, and the account cannot be used without a key. To revoke it anyway: ev keys revoke ${id} --force`,
    ),
  rights_exceeded: ({ rights }) =>
    new EvError('usage', `The key would have more rights than the key that creates it: ${rights}.`),
  expiry_past: ({ expiresAt }) =>
    new EvError('usage', `The key would expire at ${timeText(expiresAt)}, which is in the past.`),
  job_not_found: ({ id }) =>
    new EvError('no_input', `Job ${sanitizeText(id)} does not exist. To list jobs, run "ev jobs".`),
  job_not_finishable: ({ id, state }) =>
    new EvError(
      'usage',
      `Job ${id} ${state === 'failed' ? 'has failed' : 'was cancelled'}. Resume it first: ev jobs resume ${id}`,
    ),
  job_not_cancellable: ({ id, state }) =>
    new EvError(
      'usage',
      `Job ${id} ${state === 'completed' ? 'is finished' : `is already ${state}`}, so there is nothing to cancel. To delete it: ev jobs delete ${id}`,
    ),
  job_not_resumable: ({ id, state }) => new EvError('usage', notResumable(id, state)),
  job_not_reverifiable: ({ id, state, isList }) =>
    new EvError(
      'usage',
      isList
        ? `Job ${id} is ${state}. Only a list that is completed, cancelled or failed can be re-verified.`
        : `Job ${id} is not a list of the service. To re-verify a list, run "ev bulk" with "--cache off".`,
    ),
  no_row_selected: ({ id }) =>
    new EvError('usage', `Job ${id} has no rows to re-verify: none match --only or --older-than.`),
  schedule_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `Schedule ${sanitizeText(id)} does not exist. To list schedules, run "ev schedules".`,
    ),
  schedule_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${formatNumber(count)} schedules, which is the maximum. To create another one, first delete one with "ev schedules delete".`,
    ),
  schedule_without_results: ({ id }) =>
    new EvError(
      'usage',
      `Schedule ${id} cannot be resumed: the results of its list were deleted. Delete the schedule, and create one for another list.`,
    ),
  job_in_use: ({ id }) =>
    new EvError(
      'io',
      `Another ev process is working on job ${id}. Stop it first, or cancel the job: ev jobs cancel ${id}`,
    ),
  list_empty: () => new EvError('bad_input', 'The list has no rows.'),
  credits_used_up: ({ limit }) =>
    new EvError(
      'usage',
      `The account has used all of its ${formatNumber(limit)} credits for today. ${OTHER_PLAN}`,
    ),
  credits_exceeded: ({ plan, needed, left }) =>
    new EvError('usage', creditsText({ needed, left, plan })),
  concurrent_jobs_exceeded: ({ plan, openLists, max }) =>
    new EvError(
      'usage',
      `The account has ${pluralize(openLists, 'unfinished list')}, and ${planText(plan)} allows ${formatNumber(max)} at a time. Wait for one to finish, cancel one with "ev jobs cancel", or change the plan with "ev accounts set-plan".`,
    ),
  stored_rows_exceeded: ({ plan, storedRows, rows, isMore, max }) =>
    new EvError(
      'usage',
      `The account stores ${pluralize(storedRows, 'row')}, this list has ${isMore ? 'more than ' : ''}${formatNumber(rows)}, and ${planText(plan)} allows ${formatNumber(max)}. Delete lists with "ev jobs delete", or change the plan with "ev accounts set-plan".`,
    ),
  stored_feedback_exceeded: ({ plan, stored, pieces, max }) =>
    new EvError(
      'usage',
      `The account stores ${formatNumber(stored)} pieces of feedback, ${formatNumber(pieces)} more cannot be recorded, and ${planText(plan)} allows ${formatNumber(max)}. Change the plan with "ev accounts set-plan", or wait until old feedback is deleted. Then import the same files again: each piece is counted once.`,
    ),
  address_invalid: ({ address, fault }) =>
    new EvError(
      'bad_address',
      `--address is "${sanitizeText(address)}", which is not an email address. ${fault}`,
    ),
  address_in_use: ({ address, jobId, isOfAccount, otherJobs }) => {
    const others = otherJobs === 0 ? '' : ` and ${otherJobs} more (see "ev jobs")`
    const finish = isOfAccount
      ? 'Let the service finish it'
      : `Finish it ("ev jobs resume ${jobId}")`
    return new EvError(
      'usage',
      `${sanitizeText(address)} is in an unfinished list: ${jobId}${others}. ${finish} ` +
        `or cancel it ("ev jobs cancel ${jobId}") first. Nothing was erased.`,
    )
  },
  database_absent: ({ file, task }) =>
    new EvError(
      'no_input',
      task === 'backup'
        ? `The database ${file} does not exist, so there is nothing to back up. If it is elsewhere, set its directory with --data-dir.`
        : `The database ${file} does not exist, so there is nothing to copy. Set the data directory of "ev serve" with --from.`,
    ),
  database_unusable: ({ file, why }) =>
    new EvError('io', `The database ${file} cannot be copied: ${why}.`),
  database_newer: ({ file }) =>
    new EvError(
      'io',
      `The database ${file} was written by a newer version of ev. Use that version.`,
    ),
  data_dir_in_use: ({ dataDir, command }) =>
    new EvError(
      'io',
      `"ev ${command}" is running in ${dataDir}, and changes that it makes during the copy would be lost. Stop it first; it resumes its lists when you start it again.`,
    ),
  backup_of_itself: ({ file }) =>
    new EvError('usage', `${file} is the database itself. Name another file for the copy.`),
  backup_exists: ({ file }) =>
    new EvError(
      'cannot_write',
      `${file} already exists. Name another file, or overwrite it with --force.`,
    ),
  backup_failed: ({ file, why }) =>
    new EvError(
      'cannot_write',
      `The database cannot be copied to ${file}: ${why}. Check that the folder exists, is writable and has enough space.`,
    ),
  account_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `Account ${sanitizeText(id)} does not exist. To list accounts, run "ev accounts".`,
    ),
  account_exists: ({ id, name }) =>
    new EvError(
      'usage',
      `Account ${id} is already named "${sanitizeText(name)}". Use a different --name.`,
    ),
  account_name_taken: ({ name }) =>
    new EvError(
      'usage',
      `Another account has the name "${sanitizeText(name)}". Choose another name.`,
    ),
  plan_unknown: ({ plan, plans }) =>
    new EvError(
      'usage',
      `Unknown plan "${sanitizeText(plan)}". Plans: ${plans.join(', ')}. To add others, define them under "plans" in the config file.`,
    ),
  email_invalid: ({ email, fault }) =>
    new EvError(
      'usage',
      fault === null
        ? `Many mail servers do not accept the address "${sanitizeText(email)}". Use one with a domain name and an unquoted ASCII local part, such as ops@example.com.`
        : `"${sanitizeText(email)}" is not an email address. ${fault}`,
    ),
}

/** `the Free plan`: the built-in plans have names, and the admin chooses those of the others. */
const planText = (plan: string) =>
  `the ${sanitizeText(plan).replace(/^[a-z]/, first => first.toUpperCase())} plan`

type CreditFacts = {
  /** Null if it is not known. */
  readonly needed: number | null
  readonly left: number | null
  readonly plan: string
}

function creditsText({ needed, left, plan }: CreditFacts): string {
  const needs = needed === null ? 'more credits than are left' : pluralize(needed, 'credit')
  const rest = left === null ? '' : `, and the account has ${formatNumber(left)} left`
  return `The list needs ${needs}${rest} today on ${planText(plan)}. ${OTHER_PLAN}`
}

const OTHER_PLAN = 'Try again tomorrow, or change the plan with "ev accounts set-plan".'

function notResumable(id: string, state: string): string {
  if (state === 'completed') return `Job ${id} is finished, so there is nothing to resume.`
  if (state === 'cancelled' || state === 'failed') {
    return `Another process has resumed job ${id}. To see its status: ev jobs show ${id}`
  }
  return `Job ${id} belongs to the service. While "ev serve" runs, it continues the job automatically.`
}

const PRIVATE_HINT =
  ' To allow it, set --webhook-allow-ranges to its range, for this command and for "ev serve".'

const operationSentence = (error: OperationError): EvError => describeOperation(SENTENCES, error)
