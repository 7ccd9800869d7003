// The reference of /docs, from the OpenAPI document: an overview, a page for each tag, and the events.
import { html, raw } from 'hono/html'
import { createMarkdown, textOf } from './markdown.mjs'
import { renderSamples, successOf } from './samples.mjs'
import { createSchemas } from './schema.mjs'

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const markdown = createMarkdown()
const prose = text => raw(text === undefined ? '' : markdown.parse(text))
const inline = text => raw(text === undefined ? '' : markdown.parseInline(text))

/** The operations that most users need come first on their page; the others follow by path. */
const FIRST = ['verifySingle', 'verify', 'verifyBulk', 'verifyBatch', 'verifyFile', 'verifyUrl']

/** The guide that explains the operations of a tag, by its path below `/docs/`. */
const TAG_GUIDES = {
  Verification: 'first-request',
  Jobs: 'jobs',
  Webhooks: 'webhooks',
  Feedback: 'feedback',
  Account: 'limits',
  Keys: 'authentication',
  Accounts: 'accounts',
}

/** The guide that explains a parameter. */
const PARAMETER_GUIDES = {
  'Idempotency-Key': 'idempotency',
  'X-EV-Sandbox': 'sandbox',
  cursor: 'pagination',
}

/**
 * Returns the pages of the reference with their HTML, their operations and their parts for the search,
 * and a function that finds the URL of an operation by code such as `GET /v1/jobs`.
 *
 * @param {any} document an OpenAPI 3.1 document
 * @param {string} server the base URL of the samples
 */
export function renderReference(document, server) {
  const operations = operationsOf(document)
  const schemas = createSchemas(document)
  const tags = document.tags.map(({ name, description }) => ({
    path: `reference/${name.toLowerCase()}`,
    title: name,
    intro: description,
    guide: TAG_GUIDES[name],
    operations: operations.filter(({ operation }) => operation.tags[0] === name),
  }))
  const pages = tags.map(({ operations: own, guide, ...page }) => ({
    ...page,
    operations: own.map(({ id, method, operation }) => ({ id, method, title: operation.summary })),
    html:
      guideLink(guide) + own.map(one => String(renderOperation(one, { schemas, server }))).join(''),
    parts: own.map(one => searchPart(page, one)),
  }))
  const events = eventsPage(document, schemas)
  const urls = new Map(
    tags.flatMap(({ path, operations: own }) =>
      own.map(one => [`${one.method.toUpperCase()} ${one.path}`, `/docs/${path}#${one.id}`]),
    ),
  )
  return {
    overview: String(renderOverview(tags, document)),
    pages: [...pages, events],
    findOperation: code => urls.get(code),
  }
}

const guideLink = guide =>
  guide === undefined ? '' : `<p><a class="docs-more" href="/docs/${guide}">Read the guide</a></p>`

function operationsOf(document) {
  const all = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter(method => method in item).map(method => {
      const operation = { ...item[method] }
      operation.parameters = (operation.parameters ?? []).map(one => resolve(document, one))
      operation.responses = Object.fromEntries(
        Object.entries(operation.responses).map(([status, one]) => [
          status,
          resolve(document, one),
        ]),
      )
      return { id: operation.operationId, method, path, operation }
    }),
  )
  const isFirst = ({ id }) => FIRST.includes(id)
  const first = FIRST.map(id => all.find(one => one.id === id))
  return [...first, ...all.filter(one => !isFirst(one))]
}

/** Returns the object that a reference names, or the object itself. */
function resolve(document, { $ref, ...own }) {
  if ($ref === undefined) return own
  return $ref
    .slice('#/'.length)
    .split('/')
    .reduce((found, name) => found[name], document)
}

const searchPart = ({ path, title }, { id, method, path: route, operation }) => ({
  url: `/docs/${path}#${id}`,
  title: operation.summary,
  text: `${method.toUpperCase()} ${route} ${title} ${id} ${textOf(markdown.parse(operation.description ?? ''))} ${operation.parameters.map(({ name }) => name).join(' ')}`,
})

function renderOverview(tags, document) {
  return html`
    <p>Start with the <a href="/docs/first-request">first request</a>. The guides explain
      <a href="/docs/authentication">keys</a>, <a href="/docs/errors">errors</a>,
      <a href="/docs/limits">limits</a>, the <a href="/docs/sandbox">sandbox</a> and
      <a href="/docs/webhooks">webhooks</a>; the reference below describes each operation. Programs read
      <a href="/openapi.json">the OpenAPI document</a>.</p>
    ${tags.map(
      ({ path, title, intro, operations }) => html`
        <section class="card">
          <h2><a href="/docs/${path}">${title}</a></h2>
          <p>${intro}</p>
          <ul class="operations">${operations.map(
            ({ id, method, path: route, operation }) =>
              html`<li><a href="/docs/${path}#${id}">${methodBadge(method)}<code>${route}</code><span>${operation.summary}</span></a></li>`,
          )}</ul>
        </section>`,
    )}
    <section class="card"><h2>All responses</h2>${prose(document.info.description)}</section>`
}

const methodBadge = method => html`<b class="method is-${method}">${method.toUpperCase()}</b>`

function renderOperation({ id, method, path, operation }, { schemas, server }) {
  return html`
    <section class="operation" aria-labelledby="${id}">
      <h2 id="${id}"><a href="#${id}">${operation.summary}</a></h2>
      <p class="route">${methodBadge(method)}<code>${path}</code></p>
      <div class="docs-columns">
        <div class="docs-text">
          ${prose(operation.description)}
          ${renderParameters(operation.parameters, schemas)}
          ${renderBody(operation, schemas)}
          ${renderResponses(operation, schemas)}
        </div>
        <div class="docs-samples">
          ${renderSampleTabs(id, renderSamples({ server, path, method, operation }))}
          ${renderExample(operation)}
        </div>
      </div>
    </section>`
}

function renderParameters(parameters, schemas) {
  const fields = place => parameters.filter(one => one.in === place)
  const [inPath, inQuery, headers] = ['path', 'query', 'header'].map(fields)
  return html`
    ${parameterList('Path parameters', inPath, schemas)}
    ${parameterList('Query parameters', inQuery, schemas)}
    ${
      headers.length === 0
        ? ''
        : html`
      <h3>Headers</h3>
      <details><summary>${headers.map(({ name }) => name).join(', ')}</summary>${parameterFields(headers, schemas)}</details>`
    }`
}

const parameterList = (title, parameters, schemas) =>
  parameters.length === 0 ? '' : html`<h3>${title}</h3>${parameterFields(parameters, schemas)}`

const parameterFields = (parameters, schemas) =>
  html`<ul class="fields">${parameters.map(({ name, schema, required, description }) =>
    schemas.renderField({
      name,
      schema: { ...schema, description: description + guideOf(name) },
      isRequired: required === true,
    }),
  )}</ul>`

const guideOf = name =>
  name in PARAMETER_GUIDES ? ` [Read the guide](/docs/${PARAMETER_GUIDES[name]}).` : ''

function renderBody({ requestBody }, schemas) {
  if (requestBody === undefined) return ''
  const [type, { schema }] = Object.entries(requestBody.content)[0]
  return html`
    <h3>Request body <small><code>${type}</code>${requestBody.required ? '' : ', optional'}</small></h3>
    ${schemas.renderFields(schema)}`
}

function renderResponses({ responses }, schemas) {
  return html`
    <h3>Responses</h3>
    <p><a class="docs-more" href="/docs/errors">How to handle errors</a></p>
    <ul class="fields">${Object.entries(responses).map(
      ([status, { description, content = {} }]) => {
        const head = html`<code>${status}</code> ${inline(description)}`
        const [, media] = Object.entries(content)[0] ?? []
        if (!status.startsWith('2') || media === undefined) return html`<li>${head}</li>`
        return html`<li>${head} <details><summary>Fields of the response</summary>${schemas.renderFields(media.schema)}</details></li>`
      },
    )}</ul>`
}

/** Renders tabs that work without a script; with one, the choice applies to all samples. */
function renderSampleTabs(id, samples) {
  if (samples.length === 0) return ''
  return html`
    <fieldset class="samples">
      <legend class="unseen">Sample request</legend>
      <div class="segment">${samples.map(
        ({ id: language, name }, at) =>
          html`<label><input class="unseen" type="radio" name="sample-${id}" value="${language}" ${at === 0 ? raw('checked') : ''} />${name}</label>`,
      )}</div>
      ${samples.map(
        ({ id: language, text }) =>
          html`<div class="code is-${language}"><pre data-copy tabindex="0"><code>${text}</code></pre></div>`,
      )}
    </fieldset>`
}

function renderExample(operation) {
  const success = successOf(operation)
  const [type, media] = Object.entries(success?.content ?? {})[0] ?? []
  const example = media?.example ?? Object.values(media?.examples ?? {})[0]?.value
  if (example === undefined) return ''
  const text = typeof example === 'string' ? example.trim() : JSON.stringify(example, null, 2)
  return html`
    <h3>Response <small><code>${type}</code></small></h3>
    <div class="code"><pre tabindex="0"><code>${text}</code></pre></div>`
}

function eventsPage({ webhooks }, schemas) {
  const events = Object.entries(webhooks).map(([name, { post }]) => ({ name, operation: post }))
  return {
    path: 'reference/events',
    title: 'Events',
    intro: 'Requests that ev sends to your webhook endpoints.',
    operations: events.map(({ name, operation }) => ({
      id: operation.operationId,
      method: 'event',
      title: name,
    })),
    html: events.map(one => String(renderEvent(one, schemas))).join(''),
    parts: events.map(({ name, operation }) => ({
      url: `/docs/reference/events#${operation.operationId}`,
      title: name,
      text: `Events ${operation.summary}`,
    })),
  }
}

function renderEvent({ name, operation }, schemas) {
  const { schema, example } = operation.requestBody.content['application/json']
  return html`
    <section class="operation" aria-labelledby="${operation.operationId}">
      <h2 id="${operation.operationId}"><a href="#${operation.operationId}"><code>${name}</code></a></h2>
      <div class="docs-columns">
        <div class="docs-text">
          ${prose(operation.summary)}
          <h3>Fields</h3>
          ${schemas.renderFields(schema)}
        </div>
        <div class="docs-samples">
          <h3>Body</h3>
          <div class="code"><pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre></div>
        </div>
      </div>
    </section>`
}
