import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { BATCH_MAX, readEmails } from '../lists/emails.ts'
import { readEmail } from '../verify/ask.ts'

/**
 * Fields that would let a request choose which host ev connects to, or under which identity. The
 * other options of Reacher are ignored, as Reacher ignores fields that it does not know.
 */
const REFUSED: Readonly<Record<string, string>> = {
  proxy:
    'A request cannot choose a proxy: the service would connect to any host that it names. The admin sets one with --proxy.',
  from_email: 'A request cannot choose the sender of probes. The admin sets it with --mail-from.',
  hello_name: 'A request cannot choose the EHLO name of probes. The admin sets it with --helo.',
  webhook:
    'No request is sent for each address. Poll GET /v1/bulk/{job_id}, or create a webhook for batch.completed with POST /v1/webhooks.',
}

const SMTP_PORT = 25

/** Reads the address of a check. Throws ApiError. */
export function readCheck(body: unknown): string {
  const fields = readFields(body)
  const { to_email } = fields
  if (to_email === undefined || to_email === null || to_email === '') {
    throw invalidRequest('to_email field is required.')
  }
  return readEmail(to_email, 'to_email')
}

/** Reads the addresses of a list. Throws ApiError. */
export function readInput(body: unknown): string[] {
  const { input, input_type } = readFields(body)
  if (input_type !== undefined && input_type !== 'array') {
    throw invalidRequest('"input_type" must be "array".')
  }
  if (Array.isArray(input) && input.length === 0) throw requestError('input_empty')
  return readEmails(input, BATCH_MAX, 'input')
}

function readFields(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw invalidRequest('The body must be a JSON object.')
  }
  const fields = body as Readonly<Record<string, unknown>>
  for (const [name, why] of Object.entries(REFUSED)) {
    if (isSet(fields[name])) throw refused(name, why)
  }
  for (const name of ['smtp_port', 'smtp_ports']) {
    if (isSet(fields[name]) && [fields[name]].flat().some(port => port !== SMTP_PORT))
      throw refused(name, 'Mail servers receive mail on port 25, which is always used.')
  }
  return fields
}

/** Clients send null for an option that is not set. */
const isSet = (value: unknown) => value !== undefined && value !== null

const refused = (name: string, why: string) =>
  invalidRequest(`"${name}" is not accepted. ${why} Omit "${name}".`)
