import type { createApp } from '../../../src/api/app.ts'
import { commonHeaders } from '../../../src/api/headers.ts'
import type { ServiceDeps } from '../../../src/api/service.ts'
import { type Document, documentOf, type Operation, templatesOf } from './document.ts'
import { schemaChecks } from './schemas.ts'

type App = ReturnType<typeof createApp>

/**
 * Validates all responses of the app to `request` against its OpenAPI document; throws for anything
 * that it does not contain.
 */
export function underContract(app: App, service: Pick<ServiceDeps, 'settings'>): void {
  const ask = app.request.bind(app)
  app.request = async (input, init, ...rest) => {
    const response = await ask(input, init, ...rest)
    const given = input instanceof Request ? input : undefined
    const url = given?.url ?? (input instanceof URL ? input.href : String(input))
    const method = init?.method ?? given?.method ?? 'GET'
    contract ??= contractOf(documentOf(service, app))
    const { pathname } = new URL(url, 'https://ev.test')
    await contract(method.toUpperCase(), pathname, response)
    return response
  }
}

type Contract = (method: string, pathname: string, response: Response) => Promise<void>

/** Shared by all services of a file: only their `servers` differ. */
let contract: Contract | undefined

/** Throws for a response whose status, type, headers or fields are not in the document. */
export function contractOf(document: Document): Contract {
  const templates = templatesOf(document)
  const { answer, request } = schemaChecks(document)
  return async (method, pathname, response) => {
    const template = templates.find(({ fits }) => fits.test(pathname))?.path
    const methods = template === undefined ? {} : (document.paths[template] ?? {})
    const operation = methods[method === 'HEAD' ? 'get' : method.toLowerCase()]
    const name = `${method} ${template ?? pathname}`
    if (operation !== undefined) checkHeaders(name, operation, response, request)
    const schema =
      operation === undefined ? errorSchemaOf(response) : schemaOf(name, operation, response)
    if (schema === null || method === 'HEAD' || !isJson(response)) return
    if (operation === undefined && response.status < 400) return
    const check = (body: unknown) => {
      const fault = answer(schema)(body)
      if (fault !== null) throw broken(name, response, `${fault}\n${JSON.stringify(body)}`)
    }
    if (isStream(pathname, response)) checkWhenRead(response, check)
    else check(await response.clone().json())
  }
}

/** Throws for a header that is undeclared, missing or has an invalid value. */
function checkHeaders(
  name: string,
  { responses }: Operation,
  response: Response,
  check: ReturnType<typeof schemaChecks>['request'],
): void {
  const declared = Object.entries(responses[response.status]?.headers ?? {})
  const known = new Set([...OTHER_HEADERS, ...declared.map(([header]) => header.toLowerCase())])
  const unknown = [...response.headers.keys()].filter(header => !known.has(header))
  if (unknown.length > 0) throw broken(name, response, `it has the header ${unknown}`)
  for (const [header, { required, schema }] of declared) {
    const text = response.headers.get(header)
    if (text === null && required) throw broken(name, response, `it has no header ${header}`)
    if (text === null) continue
    const fault = check(schema)(schema.type === 'integer' ? Number(text) : text)
    if (fault !== null) throw broken(name, response, `${header}: ${fault}`)
  }
}

/**
 * Headers that the document describes as a whole, the type of the body, and those that Node sets
 * for the connection.
 */
const OTHER_HEADERS = [
  ...Object.keys(commonHeaders({ settings: { baseUrl: 'https://ev.test' } } as ServiceDeps)),
  ...['content-type', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'date'],
].map(header => header.toLowerCase())

const errorSchemaOf = ({ headers }: Response) => {
  const isProblem = headers.get('Content-Type')?.includes('problem') ?? false
  return { $ref: `#/components/schemas/${isProblem ? 'Problem' : 'Error'}` }
}

/** The schema of the body; null if the response has none and none is documented. */
function schemaOf(name: string, operation: Operation, response: Response) {
  const { status } = response
  const documented = operation.responses[status]
  if (documented === undefined) throw broken(name, response, 'its status is not in the document')
  const type = response.headers.get('Content-Type')?.split(';')[0]
  const { content } = documented
  if (type === undefined && content === undefined) return null
  const media = type === undefined ? undefined : content?.[type]
  if (media !== undefined) return media.schema
  throw broken(name, response, `its Content-Type ${type} is not in the document`)
}

const broken = (name: string, { status }: Response, why: string) =>
  new Error(`The contract is broken by ${name}, answered with ${status}: ${why}`)

const isJson = ({ headers }: Response) =>
  /^application\/(json|problem\+json)/.test(headers.get('Content-Type') ?? '')

/** Its body is produced while it is read, so it cannot be inspected here. */
const isStream = (pathname: string, { status }: Response) =>
  status === 200 && /^\/v1\/(jobs\/|verify\/bulk\/)/.test(pathname)

function checkWhenRead(response: Response, check: (body: unknown) => void): void {
  const read = response.text.bind(response)
  const text = async () => {
    const whole = await read()
    check(JSON.parse(whole))
    return whole
  }
  const json = async () => JSON.parse(await text())
  // Uses defineProperty, as @hono/node-server may have replaced Response with a class whose methods
  // cannot be assigned.
  Object.defineProperties(response, { text: { value: text }, json: { value: json } })
}
