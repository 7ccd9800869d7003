// JSON Schemas as nested lists of fields.
import { html, raw } from 'hono/html'
import { createMarkdown } from './markdown.mjs'

const markdown = createMarkdown()

/** More values of an enumeration than this are folded. */
const SHOWN_VALUES_MAX = 8
/** A schema that contains itself is shown this deep. */
const DEPTH_MAX = 6

/** Creates the renderer of the schemas of an OpenAPI document. */
export function createSchemas(document) {
  /** Returns a schema without references and with its `allOf` merged. */
  function resolve(schema) {
    if (schema.$ref !== undefined) {
      const { $ref, ...own } = schema
      return { ...resolve(document.components.schemas[$ref.split('/').at(-1)]), ...own }
    }
    if (schema.allOf === undefined) return schema
    const { allOf, ...own } = schema
    const parts = allOf.map(resolve)
    return {
      ...Object.assign({}, ...parts, own),
      properties: Object.assign({}, ...parts.map(one => one.properties)),
      required: parts.flatMap(one => one.required ?? []),
    }
  }

  /** Renders the fields of an object, or of the objects in an array. */
  function renderFields(given, depth = 0) {
    const schema = resolve(given)
    if (depth > DEPTH_MAX) return ''
    if (schema.items !== undefined) return renderFields(schema.items, depth)
    const variants = schema.anyOf ?? schema.oneOf
    if (variants !== undefined) return renderVariants(variants, depth)
    const { properties = {}, required = [], additionalProperties } = schema
    const fields = Object.entries(properties).map(([name, one]) =>
      renderField({ name, schema: one, isRequired: required.includes(name) }, depth),
    )
    if (typeof additionalProperties === 'object') {
      fields.push(
        renderField({ name: '…', schema: additionalProperties, isRequired: false }, depth),
      )
    }
    return fields.length === 0 ? '' : html`<ul class="fields">${fields}</ul>`
  }

  function renderVariants(variants, depth) {
    const shown = variants.map(resolve).filter(hasFields)
    if (shown.length === 0) return ''
    if (shown.length === 1) return renderFields(shown[0], depth)
    return html`<p>One of:</p><ul class="fields">${shown.map(
      one => html`<li>${renderFields(one, depth + 1)}</li>`,
    )}</ul>`
  }

  const hasFields = given => {
    const schema = resolve(given)
    if (schema.items !== undefined) return hasFields(schema.items)
    const isMap = typeof schema.additionalProperties === 'object'
    const variants = schema.anyOf ?? schema.oneOf ?? []
    return isMap || Object.keys(schema.properties ?? {}).length > 0 || variants.some(hasFields)
  }

  function renderField({ name, schema: given, isRequired }, depth = 0) {
    const schema = resolve(given)
    return html`
      <li>
        <code>${name}</code> <span class="type">${typeText(schema)}</span>${isRequired ? html` <span class="required">required</span>` : ''}
        ${schema.description === undefined ? '' : raw(markdown.parse(schema.description))}
        ${renderValues(schema)}
        ${depth < DEPTH_MAX && hasFields(schema) ? html`<details><summary>Fields of <code>${name}</code></summary>${renderFields(schema, depth + 1)}</details>` : ''}
      </li>`
  }

  /** Describes a type and its limits in words, such as "integer, 1 to 200, default 50". */
  function typeText(given) {
    const schema = resolve(given)
    return [kindOf(schema), ...limitsOf(schema)].join(', ')
  }

  function kindOf(schema) {
    const variants = schema.anyOf ?? schema.oneOf
    if (variants !== undefined)
      return [...new Set(variants.map(one => kindOf(resolve(one))))].join(' or ')
    const types = [schema.type ?? (schema.properties ? 'object' : 'any')].flat()
    const words = types.map(type =>
      type === 'array' && schema.items !== undefined
        ? `array of ${kindOf(resolve(schema.items))}`
        : type,
    )
    return words.join(' or ')
  }

  function renderValues(schema) {
    const values = schema.enum ?? resolve(schema.items ?? {}).enum
    if (values === undefined) return ''
    const list = html`<p class="values">${values.map(value => html`<code>${JSON.stringify(value)}</code> `)}</p>`
    if (values.length <= SHOWN_VALUES_MAX) return list
    return html`<details><summary>${values.length} values</summary>${list}</details>`
  }

  return { renderFields, renderField }
}

function limitsOf(schema) {
  const { format, minimum, maximum, minLength, maxLength, minItems, maxItems } = schema
  return [
    ...(format === undefined ? [] : [format]),
    ...rangeOf(shownNumber(minimum), shownNumber(maximum), ''),
    ...rangeOf(minLength, maxLength, ' characters'),
    ...rangeOf(minItems, maxItems, ' items'),
    ...(schema.const === undefined ? [] : [`always ${JSON.stringify(schema.const)}`]),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ]
}

/** The limits of integers in JavaScript say nothing to a reader. */
const shownNumber = value => (Math.abs(value ?? 0) >= Number.MAX_SAFE_INTEGER ? undefined : value)

function rangeOf(min, max, unit) {
  if (max === undefined) return min === undefined || min === 0 ? [] : [`at least ${min}${unit}`]
  return min === undefined || min === max ? [`at most ${max}${unit}`] : [`${min} to ${max}${unit}`]
}
