import { type ApiCode, STATUS } from '../api-error.ts'
import { ErrorBody } from './answers.ts'

/** For operations that need a key. */
export const SECURITY = [{ bearer: [] }]

/** What any operation with a key may answer. */
const ALWAYS: readonly ApiCode[] = [
  'authentication_error',
  'insufficient_scope',
  'ip_restricted',
  'domain_restricted',
  'rate_limit',
  'server_error',
  'service_unavailable',
]

/** The error responses of an operation: those of every one with a key, and these. */
export function errorResponses(...codes: ApiCode[]) {
  const byStatus = Object.groupBy([...codes, ...ALWAYS], code => STATUS[code])
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, group = []]) => [status, responseOf(group)]),
  )
}

function responseOf(codes: readonly ApiCode[]) {
  const examples = Object.fromEntries(codes.map(code => [code, { value: exampleOf(code) }]))
  const description = codes.map(code => `\`${code}\``).join(', ')
  return { description, content: { 'application/json': { schema: ErrorBody, examples } } }
}

const exampleOf = (code: ApiCode) => ({
  success: false as const,
  error: EXAMPLES[code] ?? 'What is wrong, in a sentence',
  code,
  request_id: 'req_01hx',
})

const EXAMPLES: Partial<Record<ApiCode, string>> = {
  authentication_error: 'Missing or invalid API key: send Authorization: Bearer <API_KEY>',
  insufficient_scope: 'This API key lacks the scope verify:single',
  ip_restricted: 'This API key may not be used from this IP address',
  domain_restricted: 'This API key may not be used from this domain',
  rate_limit: 'Rate limit exceeded: 10 requests a minute in your plan. Try again in 42 s.',
  invalid_email: 'Invalid email format',
  not_found: 'There is no such job',
  server_error: 'Something inside the service failed: try again later',
  service_unavailable: 'The service is stopping: try again',
}
