// Examples of requests and responses, made from the examples of their fields.

/** A JSON Schema of the OpenAPI document. */
type JsonSchema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly example?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly allOf?: readonly JsonSchema[]
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}

type Media = {
  readonly schema?: JsonSchema
  example?: unknown
  readonly examples?: Readonly<Record<string, { value?: unknown }>>
}
type Body = { readonly content?: Readonly<Record<string, Media>> }

/** The parts of an OpenAPI document that have examples. */
type Examined = {
  readonly paths?: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly requestBody?: Body; readonly responses?: Readonly<Record<string, Body>> }
        >
      >
    >
  >
  readonly components?: { readonly schemas?: Readonly<Record<string, JsonSchema>> }
}

/**
 * Completes the example of each JSON body of a document: missing values come from the examples of
 * the required fields of its schema. A body of several kinds has a named example of each, in the
 * order of the kinds.
 */
export function completeExamples({ paths = {}, components = {} }: Examined): void {
  for (const { requestBody, responses = {} } of Object.values(paths).flatMap(Object.values)) {
    for (const { content = {} } of [requestBody ?? {}, ...Object.values(responses)]) {
      const media = content['application/json']
      if (media?.schema !== undefined) completeMedia(media, media.schema, components.schemas ?? {})
    }
  }
}

function completeMedia(
  media: Media,
  schema: JsonSchema,
  schemas: Readonly<Record<string, JsonSchema>>,
): void {
  if (media.examples === undefined) {
    const example = completeExample(schema, media.example, schemas)
    if (example !== undefined) media.example = example
    return
  }
  for (const [index, named] of Object.values(media.examples).entries()) {
    const kind = schema.anyOf?.[index]
    if (kind === undefined || named.value === undefined) continue
    named.value = completeExample(kind, named.value, schemas)
  }
}

/**
 * Returns `given` with the examples of the required fields that it does not have; undefined if
 * there are none. The items of a list are completed, but none are added.
 */
function completeExample(
  schema: JsonSchema,
  given: unknown,
  schemas: Readonly<Record<string, JsonSchema>>,
): unknown {
  const { $ref, allOf, properties, items } = schema
  if (given !== undefined && !isRecord(given) && !Array.isArray(given)) return given
  if (given === undefined && schema.example !== undefined) return schema.example
  if ($ref !== undefined) {
    const referred = schemas[$ref.slice($ref.lastIndexOf('/') + 1)]
    return referred === undefined ? given : completeExample(referred, given, schemas)
  }
  // The schema generator writes a reference that has its own description as `allOf`.
  if (allOf !== undefined) {
    return allOf.reduce<unknown>((so, part) => completeExample(part, so, schemas), given)
  }
  if (Array.isArray(given)) {
    return items === undefined ? given : given.map(one => completeExample(items, one, schemas))
  }
  if (properties !== undefined) return completeObject(schema, given, schemas)
  if (given !== undefined) return given
  if (schema.const !== undefined) return schema.const
  if (schema.enum?.length === 1) return schema.enum[0]
  const first = (schema.anyOf ?? schema.oneOf)?.find(({ type }) => type !== 'null')
  if (first !== undefined) return completeExample(first, given, schemas)
  const item = items === undefined ? undefined : completeExample(items, undefined, schemas)
  return item === undefined ? undefined : [item]
}

function completeObject(
  { properties = {}, required = [] }: JsonSchema,
  given: Readonly<Record<string, unknown>> | undefined,
  schemas: Readonly<Record<string, JsonSchema>>,
): Readonly<Record<string, unknown>> {
  const fields = Object.entries(properties).flatMap(([name, schema]): [string, unknown][] => {
    if (given?.[name] === undefined && !required.includes(name)) return []
    const value = completeExample(schema, given?.[name], schemas)
    return value === undefined ? [] : [[name, value]]
  })
  return { ...Object.fromEntries(fields), ...Object.fromEntries(unnamed(given, properties)) }
}

/** The given fields that the schema does not name, as of a record. */
const unnamed = (given: object | undefined, properties: object) =>
  Object.entries(given ?? {}).filter(([name]) => !(name in properties))

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
