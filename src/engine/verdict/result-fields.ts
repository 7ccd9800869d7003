import type { JsonFields } from '../../platform/json-fields.ts'
import { ACTIONS } from './action.ts'
import { CLASSES, REASONS } from './reason.ts'

// The fields of a result as it is presented (`plainResult`): the API document, the examples, the
// types of the clients and the event of a finished verification are made from them.

/** `valid` of a result. In counts the word has other meanings, which docs/api.md explains. */
const VALID =
  'True if the class is `deliverable` or `risky`. False if it is `undeliverable` or `unknown`.'

const RISKS = ['low', 'medium', 'high', 'unknown'] as const

const DETAILS = {
  syntax_valid: {
    type: 'boolean',
    description: 'Whether the text is a well-formed address.',
    example: true,
  },
  domain_exists: { type: 'boolean', description: 'Whether the domain exists.', example: true },
  mx_record: {
    type: 'boolean',
    description: 'Whether the domain has a mail server: an MX record, or else its own address.',
    example: true,
  },
  smtp_valid: {
    type: 'boolean',
    description:
      "Whether the mail server accepts mail for the address. False if it wasn't contacted.",
    example: true,
  },
} as const satisfies JsonFields

/** Names and order are those of the interface. */
export const RESULT_FIELDS = {
  email: {
    type: 'string',
    description: 'The address that was verified.',
    example: 'user@example.com',
  },
  valid: { type: 'boolean', description: VALID, example: true },
  deliverable: {
    type: 'boolean',
    description: 'True if mail is expected to arrive. This includes some risky addresses.',
    example: true,
  },
  risk_level: {
    type: 'string',
    enum: RISKS,
    schemaName: 'RiskLevel',
    description:
      'Risk of sending to the address. `low`: it is accepted. `medium`: it is accepted, with a lower quality or certainty. `high`: mail would bounce or do harm. `unknown`: no answer could be obtained.',
    example: 'low',
  },
  provider: {
    type: 'string',
    description: 'Domain of the address. Empty if it has none.',
    example: 'example.com',
  },
  response_time: {
    type: 'integer',
    minimum: 0,
    description: 'Duration in milliseconds.',
    example: 412,
  },
  confidence: {
    type: 'integer',
    minimum: 0,
    maximum: 100,
    description: 'How certain the result is, from 0 to 100. It does not rate the address itself.',
    example: 95,
  },
  details: { type: 'object', schemaName: 'Details', properties: DETAILS },
  reason: {
    type: 'string',
    enum: REASONS,
    schemaName: 'Reason',
    description: 'Reason for the result.',
    example: 'accepted_email',
  },
  cached: {
    type: 'boolean',
    description: 'Whether the result came from the cache.',
    example: false,
  },
  class: {
    type: 'string',
    enum: CLASSES,
    schemaName: 'Class',
    description:
      'What is known about the address. `deliverable`: the mailbox accepts mail. `undeliverable`: mail will bounce. `risky`: it may accept mail, see the `reason`. `unknown`: no answer could be obtained.',
    example: 'deliverable',
  },
  action: {
    type: 'string',
    enum: ACTIONS,
    schemaName: 'Action',
    description:
      'What to do with the address, by the action policy of the account. `send`: mail it. `send_with_care`: mail it in small batches and watch the bounces. `retry_later`: re-verify it before you mail it. `suppress`: do not mail it.',
    example: 'send',
  },
  action_reason: {
    type: 'string',
    description: 'Reason for the action, as a sentence.',
    example: 'The mail server accepts mail for this address, so send.',
  },
} as const satisfies JsonFields
