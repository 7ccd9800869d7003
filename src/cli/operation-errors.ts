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
      /** What the user can do, as a sentence. */
      remedy: string | ((facts: Facts) => string | null),
    ]

const SET_PLAN = 'To change the plan, run "ev accounts set-plan".'

/** Error codes, which have an exit code each, and remedies for the errors of operations. */
const ANSWERS: { readonly [Code in keyof OperationErrors]: Answer<OperationFacts<Code>> } = {
  webhook_not_found: ['no_input', 'To list webhooks, run "ev webhooks".'],
  webhook_disabled: ['usage', ({ id }) => `Enable it first: ev webhooks enable ${id}`],
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
      `To list deliveries, run "ev webhooks deliveries ${webhookId === null ? 'WEBHOOK' : sanitizeText(webhookId)}".`,
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
  last_key: ['usage', ({ id }) => `To revoke it anyway: ev keys revoke ${id} --force`],
  rights_exceeded: 'usage',
  domains_required: 'usage',
  scopes_fixed: 'usage',
  expiry_past: 'usage',
  person_not_found: ['no_input', 'To list people, run "ev people".'],
  person_exists: ['usage', ({ email }) => `For a new link, run "ev people link ${email}".`],
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
  job_not_cancellable: ['usage', ({ id }) => `To delete it: ev jobs delete ${id}`],
  job_not_finishable: ['usage', ({ id }) => `Resume it first: ev jobs resume ${id}`],
  job_not_resumable: ['usage', describeResumption],
  job_not_reverifiable: [
    'usage',
    ({ isList }) =>
      isList
        ? null
        : 'To verify a list of the command line again, run "ev bulk" with "--cache off".',
  ],
  no_row_selected: 'usage',
  job_in_use: ['io', ({ id }) => `Stop it first, or cancel the job: ev jobs cancel ${id}`],
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
  const answer = ANSWERS[error.code] as Answer<never>
  const [code, remedy] = typeof answer === 'string' ? [answer, null] : answer
  const text = typeof remedy === 'function' ? remedy(error.facts as never) : remedy
  const message = error.describe(labelField)
  return new EvError(code, text === null ? message : `${message} ${text}`)
}

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

function describeResumption({ id, state }: OperationFacts<'job_not_resumable'>): string | null {
  if (state === 'completed') return null
  return state === 'cancelled' || state === 'failed'
    ? `To see its status: ev jobs show ${id}`
    : 'While "ev serve" runs, it continues the job.'
}
