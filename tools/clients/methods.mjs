// The methods of the clients that are generated, by the operation ID of docs/openapi.json. Path, query,
// body and response come from the document; here is what it does not say: names, and what differs.
//
// Written by hand in the clients: verification of addresses and lists (uploads, streams), waiting,
// downloads, events of a job, rows and changes, and the check of webhook signatures.

/** The service itself waits up to 30 s for the receiver. */
const TEST_TIMEOUT_S = 45

/**
 * The resources. `noun` names the ID in the path. A method is an operation ID, or has options:
 * - `body`: name of the parameter for the body; by default that of the noun, or `changes` for PATCH;
 * - `isFlat`: the fields of a required body are parameters of Python, as those of an optional one are;
 * - `isQueryInOptions`: the query is part of the options of TypeScript;
 * - `timeoutS`: a default timeout;
 * - `only`: the client for which the method is generated; the other one has it by hand;
 * - `open`: parameters whose values Python does not restrict.
 */
export const RESOURCES = [
  {
    name: 'OwnAccount',
    title: 'The account of the key.',
    methods: { get: 'getOwnAccount', update: 'updateOwnAccount' },
  },
  {
    name: 'Usage',
    title: 'A domain, and data of the account. Its methods are methods of the client.',
    methods: {
      // A class is a keyword of Python, and a list there.
      history: { id: 'listHistory', only: 'typescript' },
      domain: 'getDomain',
      credits: 'getCredits',
      limits: 'getLimits',
      stats: 'getStats',
      audit: { id: 'listAuditEntries', open: ['action'] },
    },
  },
  {
    name: 'Accounts',
    title: 'All accounts, for the key of an admin account.',
    noun: 'account',
    methods: {
      list: 'listAccounts',
      get: 'getAccount',
      create: 'createAccount',
      update: 'updateAccount',
      createKey: { id: 'createAccountKey', body: 'key' },
      plans: 'listPlans',
    },
  },
  {
    name: 'Keys',
    title: 'API keys, by their ID.',
    noun: 'key',
    methods: {
      list: 'listKeys',
      get: 'getKey',
      create: 'createKey',
      update: 'updateKey',
      rotate: { id: 'rotateKey', body: 'rotation' },
      delete: { id: 'deleteKey', isQueryInOptions: true },
    },
  },
  {
    name: 'People',
    title: 'People who sign in to the dashboard, by their ID.',
    noun: 'person',
    methods: {
      list: 'listPeople',
      invite: 'invitePerson',
      update: 'updatePerson',
      link: 'createPersonLink',
      resetTwoFactor: 'resetSecondFactor',
      delete: 'removePerson',
    },
  },
  {
    name: 'Schedules',
    title: 'Schedules, which verify lists again at intervals.',
    noun: 'schedule',
    methods: {
      list: 'listSchedules',
      get: 'getSchedule',
      create: 'createSchedule',
      update: 'updateSchedule',
      delete: 'deleteSchedule',
    },
  },
  {
    name: 'Webhooks',
    title: 'Webhooks and their deliveries, by their ID.',
    noun: 'webhook',
    methods: {
      list: 'listWebhooks',
      get: 'getWebhook',
      create: 'createWebhook',
      update: 'updateWebhook',
      replace: 'replaceWebhook',
      delete: 'deleteWebhook',
      test: { id: 'testWebhook', body: 'test', timeoutS: TEST_TIMEOUT_S },
      rotateSecret: { id: 'rotateWebhookSecret', body: 'rotation' },
      deliveries: 'listDeliveries',
      delivery: 'getDelivery',
      retry: 'retryDelivery',
      recover: { id: 'recoverDeliveries', body: 'recovery', isFlat: true },
      events: 'listEvents',
    },
  },
  {
    name: 'Events',
    title: 'Events that were emitted for webhooks, by their ID.',
    noun: 'event',
    methods: { list: 'listEmittedEvents', get: 'getEmittedEvent' },
  },
  {
    name: 'FeedbackSources',
    title: 'The URLs to which email providers send bounces, deliveries and complaints.',
    noun: 'source',
    methods: {
      list: 'listFeedbackSources',
      create: 'createFeedbackSource',
      delete: 'deleteFeedbackSource',
    },
  },
  {
    name: 'FeedbackReports',
    title: 'The report about feedback.',
    methods: { report: 'getFeedbackReport' },
  },
  {
    name: 'JobActions',
    title: 'Jobs, by the `job_id` of a list.',
    noun: 'job',
    methods: {
      // Python has its metadata as a dictionary and `include_sandbox` as a switch.
      list: { id: 'listJobs', only: 'typescript' },
      cancel: 'cancelJob',
      finish: 'finishJob',
      resume: 'resumeJob',
      reverify: { id: 'reverifyJob', body: 'selection' },
      delete: 'deleteJob',
      downloadUrl: { id: 'createDownloadUrl', body: 'file' },
      row: 'getResult',
      breakdown: { id: 'getBreakdown', isQueryInOptions: true },
    },
  },
]

/** Returns the resources with their methods, read from the document, for one client. */
export function readResources(document, client) {
  const operations = findOperations(document)
  return RESOURCES.map(({ methods, ...resource }) => ({
    ...resource,
    methods: Object.entries(methods)
      .map(([name, given]) => ({ name, ...(typeof given === 'string' ? { id: given } : given) }))
      .filter(({ only = client }) => only === client)
      .map(method => readMethod(document, operations, resource, method)),
  }))
}

function findOperations({ paths }) {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([http, operation]) => [
      operation.operationId,
      { ...operation, path, http: http.toUpperCase() },
    ]),
  )
  return new Map(all)
}

function readMethod({ components: { schemas } }, operations, { noun }, method) {
  const operation = operations.get(method.id)
  if (operation === undefined) throw new Error(`docs/openapi.json has no operation ${method.id}.`)
  const { path, http, summary, description, parameters = [], requestBody, responses } = operation
  const query = parameters.filter(parameter => parameter.in === 'query')
  const isPaged = query.some(parameter => parameter.name === 'cursor')
  const [status, response] = Object.entries(responses).find(([code]) => code.startsWith('2'))
  return {
    ...method,
    path,
    http,
    summary: `${summary}.`,
    description: description?.replaceAll(/\s+/g, ' ') ?? null,
    pathParameters: parameters
      .filter(parameter => parameter.in === 'path')
      .map(({ name, schema }) => ({
        name,
        words: name === 'id' ? [noun, 'id'] : name.split('_'),
        isNumber: schema.type === 'integer',
      })),
    query: query.filter(({ name }) => name !== 'cursor').sort(limitLast),
    isPaged,
    isCreating: parameters.some(({ $ref }) => $ref?.endsWith('/Idempotency-Key')),
    body: readBody(schemas, requestBody, method.body ?? (http === 'PATCH' ? 'changes' : noun)),
    answer: status === '204' ? null : readAnswer(schemas, response, isPaged),
  }
}

/** The size of a page comes after what selects the rows. */
const limitLast = (a, b) => Number(a.name === 'limit') - Number(b.name === 'limit')

function readBody(schemas, requestBody, name) {
  if (requestBody === undefined) return null
  const type = refName(requestBody.content['application/json'].schema)
  return { name, type, schema: schemas[type], isRequired: requestBody.required === true }
}

/**
 * What a method returns: the response itself, its `data`, the one list in the data, or the items of
 * all pages. `item` is the name of the schema of what is in the data or the list; null if it has none.
 */
function readAnswer(schemas, response, isPaged) {
  const type = refName(response.content['application/json'].schema)
  const { success: _, data, ...others } = schemas[type].properties ?? {}
  const isWrapped = data !== undefined && Object.keys(others).length === 0
  if (!isWrapped) return { type, kind: 'whole' }
  if (isPaged) return { type, kind: 'pages', item: refName(data.properties.items.items) }
  const lists = Object.entries(data.properties ?? {}).filter(([key]) => key !== 'total')
  const [[list, schema] = []] = lists
  if (lists.length === 1 && schema.type === 'array')
    return { type, kind: 'list', list, item: refName(schema.items) }
  return { type, kind: 'data', item: refName(data) }
}

const refName = schema => schema?.$ref?.split('/').at(-1) ?? null
