/**
 * The fields of a JSON object as plain data: names, types, texts and examples in one table, from
 * which the API document, its examples, the types of both clients and the type of the value are
 * made. Plain data loads no schema library, so the command line can read it.
 */
export type JsonFields = { readonly [name: string]: JsonField }

/** A field: a JSON Schema with an example. */
export type JsonField = {
  readonly description?: string
  /** The field can be absent. */
  readonly optional?: true
  /** Name of its schema in the API document, if other schemas refer to it. */
  readonly schemaName?: string
  /** Required, so that an example of the object is complete; optional fields may have none. */
  readonly example?: unknown
} & (
  | { readonly type: 'boolean' }
  | { readonly type: 'string'; readonly enum?: readonly string[]; readonly format?: 'date-time' }
  | { readonly type: 'integer'; readonly minimum?: number; readonly maximum?: number }
  | { readonly type: 'object'; readonly properties: JsonFields }
  /** An object with any names and text values. */
  | { readonly type: 'object'; readonly additionalProperties: { readonly type: 'string' } }
)

/** The value of one field. */
type JsonValue<F> = F extends { enum: readonly (infer Value)[] }
  ? Value
  : F extends { properties: infer Properties extends JsonFields }
    ? JsonObject<Properties>
    : F extends { additionalProperties: unknown }
      ? Readonly<Record<string, string>>
      : F extends { type: infer Type extends keyof Primitives }
        ? Primitives[Type]
        : never

type Primitives = { readonly boolean: boolean; readonly string: string; readonly integer: number }

type OptionalName<Fields extends JsonFields> = {
  [Name in keyof Fields]: Fields[Name] extends { optional: true } ? Name : never
}[keyof Fields]

/** The object that has these fields. */
export type JsonObject<Fields extends JsonFields> = {
  readonly [Name in Exclude<keyof Fields, OptionalName<Fields>>]: JsonValue<Fields[Name]>
} & { readonly [Name in OptionalName<Fields>]?: JsonValue<Fields[Name]> }

/** Returns an example of an object: those of its fields. */
export const buildExample = <Fields extends JsonFields>(fields: Fields): JsonObject<Fields> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, field]) => {
      if ('properties' in field) return [[name, buildExample(field.properties)]]
      return field.example === undefined ? [] : [[name, field.example]]
    }),
  ) as JsonObject<Fields>

type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * Returns the JSON Schema of an object with these fields. `refer` returns the schema of a field
 * that has a name; by default it is written out.
 */
export const buildJsonSchema = (
  fields: JsonFields,
  refer: (name: string, schema: JsonSchema) => JsonSchema = (_, schema) => schema,
): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const schema = fieldSchema(field, refer)
      return [name, field.schemaName === undefined ? schema : refer(field.schemaName, schema)]
    }),
  ),
  required: Object.keys(fields).filter(name => fields[name]?.optional !== true),
})

function fieldSchema(field: JsonField, refer: Parameters<typeof buildJsonSchema>[1]): JsonSchema {
  const { optional: _, schemaName: __, example: ___, ...schema } = field
  if (!('properties' in schema)) return schema
  return { ...buildJsonSchema(schema.properties, refer), description: schema.description }
}
