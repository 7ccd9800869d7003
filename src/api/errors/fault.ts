import { sanitizeText } from '../../platform/text.ts'
import { type ApiCode, ApiError, STATUS } from './api-error.ts'

/** A validation issue reported by a schema. */
type Issue = {
  readonly code?: string | undefined
  readonly message: string
  readonly path: readonly PropertyKey[]
  readonly expected?: unknown
  readonly origin?: unknown
  readonly minimum?: unknown
  readonly maximum?: unknown
  readonly values?: readonly unknown[]
  readonly format?: unknown
  /** A schema sets its own error code with `refine(…, { params: { code: 'empty_list' } })`. */
  readonly params?: unknown
}

/**
 * Describes the first issue: what was given and what is allowed. Others are reported once it is
 * fixed.
 */
export function validationError(
  target: string,
  issues: readonly Issue[],
  input: unknown,
): ApiError {
  const issue = issues[0]
  if (issue === undefined) return new ApiError('invalid_request', 'The request is not valid.')
  const label = fieldLabel(target, issue.path)
  const message = SECRET_FIELDS.has(issue.path[0])
    ? `${label} must ${requirementText(issue) ?? 'be valid'}.`
    : `${label} ${describeIssue(issue, excerptAt(input, issue.path))}`
  return new ApiError(errorCode(issue), sanitizeText(message, SENTENCE_LENGTH_MAX))
}

/** Fields with credentials, which errors do not repeat. */
const SECRET_FIELDS: ReadonlySet<unknown> = new Set(['s3'])

/** Fits all reason codes, the longest list of allowed values. */
const SENTENCE_LENGTH_MAX = 600
/** Enough of the given value to recognize it. */
const EXCERPT_LENGTH_MAX = 60

function fieldLabel(target: string, path: readonly PropertyKey[]): string {
  if (path.length === 0) return TARGET_LABELS[target] ?? 'The request'
  return `"${formatPath(path)}"${TARGET_SUFFIXES[target] ?? ''}`
}

/** Formats a field path in the notation of JavaScript: `scopes[0]`, `items[3].email`. */
export const formatPath = (path: readonly PropertyKey[]): string =>
  path
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : `${at > 0 ? '.' : ''}${String(key)}`))
    .join('')

const TARGET_LABELS: Readonly<Record<string, string>> = {
  json: 'The body',
  query: 'The query',
  param: 'The path',
  header: 'The headers',
}

const TARGET_SUFFIXES: Readonly<Record<string, string>> = {
  query: ' in the query',
  param: ' in the path',
  header: ' in the headers',
}

/** Returns null if there is no value at the path. */
function excerptAt(input: unknown, path: readonly PropertyKey[]): string | null {
  let value: unknown = input
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null
    value = value[name as keyof typeof value]
  }
  return value === undefined ? null : sanitizeText(JSON.stringify(value) ?? '', EXCERPT_LENGTH_MAX)
}

function describeIssue(issue: Issue, excerpt: string | null): string {
  const requirement = requirementText(issue)
  const is = excerpt === null ? 'is missing' : `is ${excerpt}`
  return requirement === null ? `${issue.message}.` : `${is}; it must ${requirement}.`
}

/** The text after "it must", or null if the message of the schema is complete. */
function requirementText(issue: Issue): string | null {
  const { code, message, origin, minimum, maximum, values = [] } = issue
  // A schema with a message of its own.
  const [, own] = /^must (.*)$/.exec(message) ?? []
  if (own !== undefined || code === 'custom' || code === 'invalid_union') return own ?? null
  if (code === 'too_small' && minimum === 1 && (origin === 'string' || origin === 'array')) {
    return 'not be empty'
  }
  if (code === 'too_small') return amount(origin, `at least ${minimum}`)
  if (code === 'too_big') return amount(origin, `at most ${maximum}`)
  if (code === 'invalid_value')
    return `be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`
  if (code === 'invalid_format' && issue.format === 'datetime') {
    return 'be a time such as 2026-03-21T10:30:00Z'
  }
  const kind = code === 'invalid_type' ? KINDS[String(issue.expected)] : undefined
  return kind === undefined ? null : `be ${kind}`
}

function amount(origin: unknown, bound: string): string {
  if (origin === 'string') return `have ${bound} characters`
  return origin === 'array' ? `have ${bound} entries` : `be ${bound}`
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false, without quotes',
  array: 'an array',
  object: 'an object',
}

function errorCode({ params }: Issue): ApiCode {
  const code =
    typeof params === 'object' && params !== null && 'code' in params ? params.code : null
  return typeof code === 'string' && code in STATUS ? (code as ApiCode) : 'invalid_request'
}
