import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../../../src/api/app.ts'
import { openapiDocument } from '../../../src/api/openapi-document.ts'
import type { ServiceDeps } from '../../../src/api/service.ts'
import { composeApi } from '../../../src/compose/api.ts'

export type Schema = { readonly [keyword: string]: unknown }

export type Media = {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

/** A request header or a response header. */
export type Header = { readonly required?: boolean; readonly schema: Schema }

type Content = Readonly<Record<string, Media>>

export type Operation = {
  readonly operationId: string
  readonly summary: string
  readonly security?: readonly object[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly description?: string
  }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Answer>>
}

type Answer = {
  readonly content?: Content
  readonly headers?: Readonly<Record<string, Header>>
}

export type Document = {
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly [kind: string]: Readonly<Record<string, unknown>>
  }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** An operation with its method and path. */
export type Place = {
  readonly path: string
  /** Upper-case HTTP method. */
  readonly method: string
  readonly operation: Operation
}

type App = ReturnType<typeof createApp>

/** The OpenAPI document as clients get it, with its references resolved. */
export const documentOf = (service: Pick<ServiceDeps, 'settings'>, app: App): Document =>
  resolveRefs(JSON.parse(JSON.stringify(openapiDocument(service, app))) as Document)

/** Replaces references by what they refer to, except those to schemas. */
export function resolveRefs(document: Document): Document {
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve)
    if (typeof value !== 'object' || value === null) return value
    const [, kind = '', name = ''] = REFERENCE.exec(String(Object(value).$ref)) ?? []
    if (kind !== '' && kind !== 'schemas') return resolve(document.components[kind]?.[name])
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolve(one)]))
  }
  return { ...document, paths: resolve(document.paths) as Document['paths'] }
}

const REFERENCE = /^#\/components\/(\w+)\/([\w-]+)$/

/**
 * The app of a service without requests, and its document: only the settings of the service are
 * used.
 */
export function bareApi(): { app: App; document: Document } {
  const dataDir = mkdtempSync(join(tmpdir(), 'ev-contract-'))
  const settings = { version: '0', baseUrl: 'https://ev.test', dataDir, plans: new Map() }
  const given = { settings: { ...settings, trustProxy: [] } } as unknown as ServiceDeps
  const service = composeApi(given)
  const app = createApp(service)
  rmSync(dataDir, { recursive: true })
  return { app, document: documentOf(service, app) }
}

export const placesOf = ({ paths }: Document): Place[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation,
    })),
  )

/** The named examples of a body; most have one. */
export const examplesOf = ({ example, examples = {} }: Media): [name: string, value: unknown][] => [
  ...(example === undefined ? [] : [['example', example] as [string, unknown]]),
  ...Object.entries(examples).map(([name, { value }]): [string, unknown] => [name, value]),
]

/**
 * The operation that matches the path of a request: paths with fewer parameters first, as `events`
 * is no ID.
 */
export function templatesOf({ paths }: Document): { path: string; fits: RegExp }[] {
  const parameters = (path: string) => path.split('{').length
  return Object.keys(paths)
    .toSorted((a, b) => parameters(a) - parameters(b))
    .map(path => ({ path, fits: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`) }))
}

/** The path that email providers call: they have no API key, and define the body. */
export const PROVIDER_PATH = '/v1/feedback/{provider}/{id}'

/** Whether the interface defines an operation: its key, its headers and its body. */
export const isOfInterface = ({ path }: Pick<Place, 'path'>): boolean =>
  path.startsWith('/v1/') && path !== PROVIDER_PATH
