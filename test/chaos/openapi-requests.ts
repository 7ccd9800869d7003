import {
  type Document,
  examplesOf,
  type Place,
  placesOf,
  type Schema,
} from '../api/contract/document.ts'

/** One request of the fuzz test, in the form that `fetch` takes. */
export type FuzzRequest = {
  readonly method: string
  /** The path with its query string. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | FormData | null
}

/** Generates requests from the operations of a document: some valid, most slightly invalid. */
export class RequestFuzzer {
  readonly #places: readonly Place[]
  readonly #schemas: Document['components']['schemas']
  readonly #random: () => number
  readonly #texts: readonly string[]
  /** IDs found in responses, without that of the key of the client. */
  readonly #ids = new Set<string>()

  /** `texts` are values that are meaningful to the service, such as addresses and URLs. */
  constructor(document: Document, o: { random: () => number; texts: readonly string[] }) {
    this.#places = placesOf(document)
    this.#schemas = document.components.schemas
    this.#random = o.random
    this.#texts = o.texts
  }

  /** Stores the IDs in a response for later paths. */
  learn(text: string, except: string): void {
    for (const [id] of text.matchAll(/\b(?:job|key|wh|dlv)_\w+/g)) {
      if (id !== except && this.#ids.size < IDS_MAX) this.#ids.add(id)
    }
  }

  next(): FuzzRequest {
    const place = this.#pick(this.#places)
    const { parameters = [], requestBody } = place.operation
    const headers: Record<string, string> = {}
    const query = new URLSearchParams()
    for (const { name, in: where, schema = {} } of parameters as readonly Parameter[]) {
      if (this.#withProbability(0.6)) continue
      const value = name === 'wait' ? this.#pick(WAITS) : plain(this.#sample(schema))
      if (where === 'query') query.append(name, value)
      if (where === 'header') headers[name] = value.replace(/[^ -~]/g, '?')
    }
    if (this.#withProbability(0.1)) headers.Accept = this.#pick(ACCEPTS)
    if (this.#withProbability(0.05)) headers.Authorization = this.#pick(AUTHORIZATIONS)
    const body = requestBody === undefined ? null : this.#body(requestBody.content, headers)
    const method = this.#withProbability(0.03) ? this.#pick(METHODS) : place.method
    const path = place.path.replace(/\{(\w+)\}/g, (_, name) => this.#id(place.path, name))
    const search = query.size === 0 ? '' : `?${query}`
    const isBodyless = method === 'GET' || method === 'HEAD'
    return { method, path: path + search, headers, body: isBodyless ? null : body }
  }

  #id(path: string, name: string): string {
    const prefix =
      name === 'delivery_id' ? 'dlv_' : (PREFIXES.find(([of]) => path.includes(of))?.[1] ?? '')
    const known = [...this.#ids].filter(id => id.startsWith(prefix))
    if (known.length > 0 && this.#withProbability(0.8)) return this.#pick(known)
    return encodeURIComponent(this.#pick(JUNK_TEXTS).toWellFormed()) || '-'
  }

  #body(content: Content, headers: Record<string, string>): string | FormData {
    const [type, media] = this.#pick(Object.entries(content))
    const [, example] = this.#pick(examplesOf(media))
    const value = this.#withProbability(0.3) ? this.#sample(media.schema) : this.#mutated(example)
    if (type === 'multipart/form-data') {
      const form = new FormData()
      for (const [name, one] of Object.entries(Object(value))) {
        form.append(name, name === 'file' ? new Blob([plain(one)]) : plain(one))
      }
      return form
    }
    headers['Content-Type'] = this.#withProbability(0.03) ? 'text/plain' : type
    const text = JSON.stringify(value) ?? ''
    return this.#withProbability(0.03) ? text.slice(0, this.#below(text.length + 1)) : text
  }

  /** Returns the value with a part replaced, removed or added; sometimes unchanged. */
  #mutated(value: unknown): unknown {
    if (this.#withProbability(0.2)) return value
    if (this.#withProbability(0.3)) return this.#junk()
    if (Array.isArray(value)) {
      const at = this.#below(value.length)
      return this.#withProbability(0.3)
        ? [...value, this.#junk()]
        : value.with(at, this.#mutated(value[at]))
    }
    if (typeof value !== 'object' || value === null) return this.#junk()
    const names = Object.keys(value)
    const name = this.#withProbability(0.1) ? this.#pick(JUNK_TEXTS) : this.#pick(names)
    const { [name]: one, ...rest } = value as Record<string, unknown>
    return this.#withProbability(0.2) ? rest : { ...rest, [name]: this.#mutated(one) }
  }

  /** Returns a value that matches a schema, or sometimes one that does not. */
  #sample(schema: Schema, depth = 0): unknown {
    if (this.#withProbability(0.1) || depth > DEPTH_MAX) return this.#junk()
    const { $ref, enum: values, const: only, type, items, properties } = schema as SchemaParts
    if ($ref !== undefined) {
      return this.#sample(this.#schemas[$ref.split('/').at(-1) ?? ''] ?? {}, depth + 1)
    }
    const choices = schema.anyOf ?? schema.oneOf
    if (Array.isArray(choices)) return this.#sample(this.#pick(choices), depth + 1)
    if (only !== undefined) return only
    if (values !== undefined) return this.#pick(values)
    switch (Array.isArray(type) ? this.#pick(type) : type) {
      case 'boolean':
        return this.#withProbability(0.5)
      case 'integer':
      case 'number':
        return this.#pick(NUMBERS)
      case 'array':
        return Array.from({ length: this.#below(4) }, () => this.#sample(items ?? {}, depth + 1))
      case 'object': {
        const chosen = Object.entries(properties ?? {}).filter(() => this.#withProbability(0.7))
        return Object.fromEntries(chosen.map(([name, one]) => [name, this.#sample(one, depth + 1)]))
      }
      case 'null':
        return null
      default:
        return this.#pick(this.#texts)
    }
  }

  #junk(): unknown {
    return this.#pick<unknown>([...JUNK_VALUES, ...JUNK_TEXTS, ...this.#texts])
  }

  #withProbability = (share: number) => this.#random() < share
  #below = (limit: number) => Math.floor(this.#random() * limit)
  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)] as T
  }
}

type Content = NonNullable<Place['operation']['requestBody']>['content']
type Parameter = { readonly name: string; readonly in: string; readonly schema?: Schema }
type SchemaParts = {
  readonly $ref?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly type?: string | readonly string[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
}

const plain = (value: unknown) =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '')

const IDS_MAX = 2_000
const DEPTH_MAX = 5
/** Seconds. A request that waits longer would delay the test. */
const WAITS = ['0', '1', '-1', 'x', '1e9', '']
const ACCEPTS = ['application/problem+json', 'text/event-stream', '*/*', 'image/png', '', ';;q=']
const AUTHORIZATIONS = ['', 'Bearer', 'Bearer x', 'Basic dTpw', 'Bearer ev_live_']
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const PREFIXES = [
  ['/keys/', 'key_'],
  ['/webhooks/', 'wh_'],
  ['/', 'job_'],
] as const
const NUMBERS = [0, 1, 2, 10, 50, -1, 0.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308]
const JUNK_VALUES = [null, true, false, [], {}, [[]], [null], { '': 1 }, ...NUMBERS]
const JUNK_TEXTS = [
  ...[
    '',
    ' ',
    '\0',
    '\r\n',
    '\u202e',
    '\ud800',
    'é',
    '😀',
    '..',
    '%',
    '%00',
    '%E0%A4%A',
    '-',
    '__proto__',
  ],
  ...['constructor', "' or 1=1 --", '<script>', '=1+1', 'job_', 'x'.repeat(300), '9'.repeat(40)],
  ...['1e999', '2026-13-45T99:99:99Z', '-1', 'null', '[]', '{}', '2026-11-23T00:00:00Z', 'true'],
]
