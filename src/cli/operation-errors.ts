import type { EvApiError } from '../client/error.ts'
import type { ErrorBody } from '../client/types.ts'
import { type ErrorCode, EvError } from '../platform/error.ts'
import type {
  OperationError,
  OperationErrors,
  OperationFacts,
} from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'

type Answer<Facts> =
  | ErrorCode
  | readonly [
      code: ErrorCode,
      /** A sentence that tells the user what to do. An error that a service sent has no facts. */
      remedy: string | ((facts: Partial<Facts>) => string | null),
    ]

const SET_PLAN = 'To change the plan, run "ev accounts set-plan".'

/** Error codes, which have an exit code each, and remedies for the errors of operations. */
const ANSWERS: { readonly [Code in keyof OperationErrors]: Answer<OperationFacts<Code>> } = {
  webhook_not_found: ['no_input', 'To list webhooks, run "ev webhooks".'],
  webhook_disabled: ['usage', ({ id = 'WEBHOOK' }) => `Enable it first: ev webhooks enable ${id}`],
  webhook_limit_reached: ['usage', 'First delete one with "ev webhooks delete".'],
  webhook_url_rejected: [
    'usage',
    ({ isPrivate }) =>
      isPrivate
        ? 'To allow it, set --webhook-allow-ranges to its range, for this command and for "ev serve".'
        : null,
  ],
  webhook_header_rejected: 'usage',
  webhook_test_limit_reached: 'usage',
  event_not_found: 'no_input',
  delivery_not_found: [
    'no_input',
    ({ webhookId }) =>
      `To list deliveries, run "ev webhooks deliveries ${sanitizeText(webhookId ?? 'WEBHOOK')}".`,
  ],

  feedback_source_not_found: ['no_input', 'To list sources, run "ev feedback sources".'],
  feedback_source_limit_reached: ['usage', 'First delete one with "ev feedback sources delete".'],
  feedback_key_rejected: 'usage',
  feedback_request_rejected: 'bad_input',
  stored_feedback_exceeded: [
    'usage',
    `${SET_PLAN} Or wait until old feedback is deleted. Then import the same files again: each piece is counted once.`,
  ],

  name_invalid: 'usage',
  email_invalid: 'usage',
  account_not_found: ['no_input', 'To list accounts, run "ev accounts".'],
  account_exists: ['usage', 'Choose another name.'],
  account_name_taken: 'usage',
  plan_unknown: ['usage', 'To add others, define them under "plans" in the config file.'],
  account_rights_exceeded: 'usage',
  key_not_found: ['no_input', 'To list keys, run "ev keys".'],
  key_limit_reached: ['usage', `Revoke unused keys with "ev keys revoke". ${SET_PLAN}`],
  last_key: ['usage', ({ id = 'KEY' }) => `To revoke it anyway: ev keys revoke ${id} --force`],
  rights_exceeded: 'usage',
  domains_required: 'usage',
  scopes_fixed: 'usage',
  expiry_past: 'usage',
  person_not_found: ['no_input', 'To list people, run "ev people".'],
  person_exists: [
    'usage',
    ({ email = 'ADDRESS' }) => `For a new link, run "ev people link ${email}".`,
  ],
  person_limit_reached: 'usage',
  person_rights_exceeded: 'usage',
  own_person: 'usage',
  two_factor_without_admin: [
    'usage',
    'To invite one, run "ev people invite --role admin --name NAME --email ADDRESS".',
  ],
  credits_used_up: ['usage', SET_PLAN],
  credits_exceeded: ['usage', SET_PLAN],

  job_not_found: ['no_input', 'To list jobs, run "ev jobs".'],
  job_not_cancellable: ['usage', ({ id = 'JOB' }) => `To delete it: ev jobs delete ${id}`],
  job_not_finishable: ['usage', ({ id = 'JOB' }) => `Resume it first: ev jobs resume ${id}`],
  job_not_resumable: ['usage', describeResumption],
  job_not_reverifiable: 'usage',
  job_not_list: [
    'usage',
    'To verify the addresses again, run "ev verify" or "ev bulk" with "--cache off".',
  ],
  no_row_selected: 'usage',
  job_in_use: ['io', ({ id = 'JOB' }) => `Stop it first, or cancel the job: ev jobs cancel ${id}`],
  list_empty: 'bad_input',
  concurrent_jobs_exceeded: [
    'usage',
    `Wait for one to finish, or cancel one with "ev jobs cancel". ${SET_PLAN}`,
  ],
  stored_rows_exceeded: ['usage', `Delete lists with "ev jobs delete". ${SET_PLAN}`],
  schedule_not_found: ['no_input', 'To list schedules, run "ev schedules".'],
  schedule_limit_reached: ['usage', 'First delete one with "ev schedules delete".'],
  schedule_without_results: 'usage',

  address_invalid: 'bad_address',
  address_in_use: [
    'usage',
    ({ jobId, isOfAccount, otherJobs }) =>
      `${isOfAccount ? 'Let the service finish it' : `Finish it ("ev jobs resume ${jobId}")`} or cancel it ("ev jobs cancel ${jobId}") first.${otherJobs === 0 ? '' : ' To see the others, run "ev jobs".'}`,
  ],
  database_absent: [
    'no_input',
    ({ task }) =>
      task === 'backup'
        ? 'If it is elsewhere, set its directory with --data-dir.'
        : 'Set the data directory of "ev serve" with --from.',
  ],
  database_unusable: 'io',
  database_newer: 'io',
  data_dir_in_use: 'io',
  backup_of_itself: 'usage',
  backup_exists: ['cannot_write', 'Name another file, or overwrite it with --force.'],
  backup_failed: 'cannot_write',
}

/** Returns an error of an operation with the names of the options and the remedy of the CLI. */
export function toCliError(error: OperationError): EvError {
  const answer = ANSWERS[error.code] as Answer<object>
  const remedy = describeRemedy(answer, error.facts)
  const message = error.describe(labelField)
  const code = typeof answer === 'string' ? answer : answer[0]
  return new EvError(code, remedy === null ? message : `${message} ${remedy}`)
}

function describeRemedy(answer: Answer<object>, facts: object): string | null {
  const remedy = typeof answer === 'string' ? null : answer[1]
  return typeof remedy === 'function' ? remedy(facts) : remedy
}

/**
 * Returns the text of an error of a service: with the names of the options, and with the remedy of
 * the CLI, if its reason has one, in place of that of the API.
 */
export function describeServiceError({ message, status, body }: EvApiError): string {
  const { reason = '', remedy = '' } = (isObject(body) ? body : {}) as Partial<ErrorBody>
  const answer = (ANSWERS as Readonly<Record<string, Answer<object>>>)[reason]
  const text =
    answer === undefined
      ? message
      : message.replace(/^"(\w+)"/, (_, field: string) => labelField(field))
  const own =
    answer === undefined
      ? (REQUEST_REMEDIES[reason] ?? (status === 401 ? CHECK_KEY : null))
      : describeRemedy(answer, {})
  if (own === null) return text
  const neutral = text.endsWith(remedy) ? text.slice(0, text.length - remedy.length) : text
  return `${neutral.trimEnd()} ${own}`
}

const CHECK_KEY = 'Check EV_KEY, --key-file or --key.'
const CHECK_URL = 'Check --url. The service may be older than this ev.'

/** Remedies for errors that only the HTTP API has, by the reason. */
const REQUEST_REMEDIES: Readonly<Record<string, string>> = {
  path_unknown: CHECK_URL,
  method_not_allowed: CHECK_URL,
  account_streams_exceeded: 'Stop another command that waits for a list, or close its page.',
  streams_exceeded: 'Try again later.',
  results_incomplete: 'To get the existing ones, add --partial.',
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Formats the name of a field as the option or the argument that has it. */
const labelField = (field: string): string => LABELS[field] ?? `--${field.replaceAll('_', '-')}`

/** Fields that are arguments of some commands, or have an option with another name. */
const LABELS: Readonly<Record<string, string>> = {
  name: 'The name',
  email: 'The email address',
  plan: 'The plan',
  headers: '--header',
  allowed_domains: '--allow-domain',
  expires_at: '--expires',
  older_than_days: '--older-than',
}

function describeResumption({
  id = 'JOB',
  state,
}: Partial<OperationFacts<'job_not_resumable'>>): string | null {
  if (state === 'completed') return null
  return state === undefined || state === 'cancelled' || state === 'failed'
    ? `To see its status: ev jobs show ${id}`
    : 'While "ev serve" runs, it continues the job.'
}
