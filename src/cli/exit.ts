import { isOutage } from '../db/postgres/errors.ts'
import { type ErrorCode, EvError, errorMessage } from '../platform/error.ts'
import {
  describeOperation,
  OperationError,
  type OperationTexts,
} from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { timeText } from './jobs/time-text.ts'

/** What ev exits with, after sysexits.h where that has a word for it. */
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

/** Says an error as a sentence on stderr and gives the code to exit with; the stack only when debugging. */
export function reportError(context: CliContext, thrown: unknown, debug: boolean): number {
  const error = toEvError(thrown)
  context.stderr.write(`ev: ${error.message}\n`)
  if (debug) {
    context.stderr.write(`${error.stack}\n`)
    if (error.cause !== undefined) context.stderr.write(`caused by: ${stackOf(error.cause)}\n`)
  }
  return EXIT_CODES[error.code]
}

function toEvError(thrown: unknown): EvError {
  if (thrown instanceof EvError) return thrown
  if (thrown instanceof OperationError) return operationSentence(thrown)
  return databaseFault(thrown) ?? internalFault(thrown)
}

/** What befalls the database midway: a full disk, a damaged file, another writer that does not end. */
function databaseFault(thrown: unknown): EvError | null {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (isOutage(thrown)) {
    const sentence = `The database cannot be used any longer: ${errorMessage(thrown)}. Look whether its server runs and may be reached from here (“ev doctor” tells), and try again.`
    return new EvError('io', sentence, { cause: thrown })
  }
  if (!code.startsWith('SQLITE_')) return null
  const remedy = /^SQLITE_(CORRUPT|NOTADB)/.test(code)
    ? 'The file is damaged: move it away, or name another place with --data-dir.'
    : 'Set that right, and the same command goes on: nothing that was found out is lost.'
  const sentence = `The database cannot be used any longer: ${errorMessage(thrown)}. ${remedy}`
  return new EvError('io', sentence, { cause: thrown })
}

const internalFault = (cause: unknown) =>
  new EvError(
    'internal',
    `Something went wrong inside ev: ${errorMessage(cause)}. Please report it, with what --debug prints.`,
    { cause },
  )

const stackOf = (cause: unknown) => (cause instanceof Error ? cause.stack : String(cause))

/**
 * Ends the run when the output cannot be written: its reader has left, or the disk is full. Returns a
 * function that removes these listeners, and those that a command has added since.
 */
export function watchOutput(context: CliContext, debug: boolean): () => void {
  const { stdout, stderr } = context
  const before = new Set([...stdout.listeners('error'), ...stderr.listeners('error')])
  const endRun = (cause: NodeJS.ErrnoException) => {
    // `ev … | head -1`: who reads has had enough, and nobody needs to be told.
    if (cause.code === 'EPIPE') context.exit(EXIT_CODES.io)
    const sentence = `The output cannot be written: ${cause.message}. Send it elsewhere; what was found out of a list is kept.`
    context.exit(reportError(context, new EvError('cannot_write', sentence, { cause }), debug))
  }
  // Progress that nobody reads is no reason to stop.
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

/** What the command line says of each refusal of a use case, and the code to exit with. */
const SENTENCES: OperationTexts<EvError> = {
  webhook_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `There is no webhook ${sanitizeText(id)}. “ev webhooks” lists those there are.`,
    ),
  webhook_disabled: ({ id }) =>
    new EvError(
      'usage',
      `The webhook ${id} is switched off, so nothing is sent to it. Switch it on first: “ev webhooks enable ${id}”.`,
    ),
  webhook_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${count} webhooks, which is the most it may have. Remove one first, with “ev webhooks delete”.`,
    ),
  webhook_url_rejected: ({ url, fault, isPrivate }) =>
    new EvError(
      'usage',
      `--url is “${sanitizeText(url, 100)}”, which cannot be used. ${fault}${isPrivate ? PRIVATE_HINT : ''}`,
    ),
  webhook_test_limit_reached: ({ count }) =>
    new EvError('usage', `${count} test events of this account are in flight. Try again later.`),
  delivery_not_found: ({ id, webhookId }) =>
    new EvError(
      'no_input',
      `There is no delivery ${sanitizeText(id)}${webhookId === null ? '' : ` of the webhook ${sanitizeText(webhookId)}`}. “ev webhooks deliveries ${webhookId === null ? 'WEBHOOK' : sanitizeText(webhookId)}” lists those there are; what ended is kept for seven days.`,
    ),
  name_invalid: ({ name, of, lengthMax }) =>
    new EvError(
      'usage',
      `“${sanitizeText(name)}” is no name for ${of === 'key' ? 'a key' : 'an account'}: --name takes 1 to ${lengthMax} characters on one line.`,
    ),
  key_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `There is no key ${sanitizeText(id)}. “ev keys” lists those there are.`,
    ),
  key_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${count} keys, which is the most it may have. Revoke those that nobody uses, with “ev keys revoke”.`,
    ),
  last_key: ({ id, accountName }) =>
    new EvError(
      'usage',
      `${id} is the last key of the account ${sanitizeText(accountName)}: nothing and nobody can use the account without it. To revoke it all the same: ev keys revoke ${id} --force`,
    ),
  rights_exceeded: ({ rights }) =>
    new EvError('usage', `The key would have more rights than the one that asks: ${rights}.`),
  expiry_past: ({ expiresAt }) =>
    new EvError('usage', `The key would expire at ${timeText(expiresAt)}, which is past.`),
  job_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `There is no job ${sanitizeText(id)}. “ev jobs” lists those there are.`,
    ),
  job_not_cancellable: ({ id, state }) =>
    new EvError(
      'usage',
      `Job ${id} ${state === 'completed' ? 'is finished' : `is ${state} already`}: there is nothing to cancel. “ev jobs delete ${id}” removes it.`,
    ),
  job_not_resumable: ({ id, state }) => new EvError('usage', notResumable(id, state)),
  job_in_use: ({ id }) =>
    new EvError(
      'io',
      `An ev is at work on job ${id}. Stop it first, or cancel the job: “ev jobs cancel ${id}”.`,
    ),
  list_empty: () => new EvError('bad_input', 'The list has no rows.'),
  credits_used_up: ({ limit }) =>
    new EvError('usage', `All ${limit} credits of the account are used up today. ${OTHER_PLAN}`),
  credits_exceeded: ({ plan, needed, left }) =>
    new EvError(
      'usage',
      `The list needs ${needed ?? 'more'} credits, and its account has ${left ?? 'too few'} left today in the plan ${plan}. ${OTHER_PLAN}`,
    ),
  concurrent_jobs_exceeded: ({ plan, openLists, max }) =>
    new EvError(
      'usage',
      `${openLists} lists of the account are not finished, and the plan ${plan} allows ${max} at a time. Wait for one to finish, cancel one with “ev jobs cancel”, or give the account another plan: “ev accounts set-plan”.`,
    ),
  stored_rows_exceeded: ({ plan, storedRows, rows, isMore, max }) =>
    new EvError(
      'usage',
      `The account stores ${storedRows} rows of lists, this list has ${isMore ? 'more than ' : ''}${rows}, and the plan ${plan} allows ${max}. Delete lists with “ev jobs delete”, or give the account another plan: “ev accounts set-plan”.`,
    ),
  address_invalid: ({ address, fault }) =>
    new EvError(
      'bad_address',
      `“${sanitizeText(address)}” is no address. ${fault} --address takes one such as ann@example.com.`,
    ),
  address_in_use: ({ address, jobId, isOfAccount, otherJobs }) => {
    const others = otherJobs === 0 ? '' : ` and ${otherJobs} more (see “ev jobs”)`
    const finish = isOfAccount
      ? 'Let the service finish it'
      : `Finish it (“ev jobs resume ${jobId}”)`
    return new EvError(
      'usage',
      `${sanitizeText(address)} stands in a list that is not finished: ${jobId}${others}. ${finish} ` +
        `or cancel it (“ev jobs cancel ${jobId}”) first. Nothing was forgotten.`,
    )
  },
  database_absent: ({ file, task }) =>
    new EvError(
      'no_input',
      task === 'backup'
        ? `There is no database ${file} yet, so there is nothing to back up. If it is elsewhere, name the place with --data-dir.`
        : `There is no database ${file}, so there is nothing to copy. Name the data directory of “ev serve” with --from.`,
    ),
  database_unusable: ({ file, why }) =>
    new EvError('io', `The database ${file} cannot be copied: ${why}.`),
  database_newer: ({ file }) =>
    new EvError(
      'io',
      `The database ${file} was written by a newer version of ev: use that version.`,
    ),
  data_dir_in_use: ({ dataDir, command }) =>
    new EvError(
      'io',
      `An “ev ${command}” is at work in ${dataDir}, and what it does meanwhile would be lost. Stop it first: it goes on later where it was.`,
    ),
  backup_of_itself: ({ file }) =>
    new EvError('usage', `${file} is the database itself. Name another file for the copy.`),
  backup_exists: ({ file }) =>
    new EvError(
      'cannot_write',
      `${file} is there already. Name another file, or replace it with --force.`,
    ),
  backup_failed: ({ file, why }) =>
    new EvError(
      'cannot_write',
      `The database cannot be copied to ${file}: ${why}. Look whether the folder is there, may be written and has room.`,
    ),
  account_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `There is no account ${sanitizeText(id)}. “ev accounts” lists those there are.`,
    ),
  account_exists: ({ id, name }) =>
    new EvError(
      'usage',
      `There is an account “${sanitizeText(name)}” already: ${id}. Give another --name.`,
    ),
  plan_unknown: ({ plan, plans }) =>
    new EvError(
      'usage',
      `There is no plan “${sanitizeText(plan)}”; there are ${plans.join(', ')}. The config file may add others under "plans".`,
    ),
  email_invalid: ({ email, fault }) =>
    new EvError(
      'usage',
      fault === null
        ? `“${sanitizeText(email)}” is an address that many mail servers do not take. Give one at a domain, with ASCII letters and no quotation marks before the @, such as ops@example.com.`
        : `“${sanitizeText(email)}” is no address. ${fault}`,
    ),
}

const OTHER_PLAN = 'Try again tomorrow, or give the account another plan: “ev accounts set-plan”.'

function notResumable(id: string, state: string): string {
  if (state === 'completed') return `Job ${id} is finished: there is nothing to go on with.`
  if (state === 'cancelled' || state === 'failed') {
    return `Job ${id} was resumed by another meanwhile: “ev jobs show ${id}”.`
  }
  return `Job ${id} is one of the service: “ev serve” goes on with it by itself, whenever it runs.`
}

const PRIVATE_HINT =
  ' Where it is meant so, allow its range with --webhook-allow-ranges, here and at “ev serve”.'

const operationSentence = (error: OperationError): EvError => describeOperation(SENTENCES, error)
