/** Where pg-boss keeps its tables. */
export const SCHEMA = 'ev_boss'

/*
 * What pg-boss has no call for: to make many entries due sooner by their keys, to mark one that runs as to be run again,
 * and to put an entry back behind the others. Each is one statement, so nothing comes in between, and a crash leaves
 * nothing half done. `again` in the data of an entry that runs is when it is due once more, epoch seconds of the
 * database. Written for the tables of the version of pg-boss in package.json; the tests of the queue run them.
 */

/**
 * $1 queue, $2 keys, $3 in how many ms, $4 the channel that wakes others, empty when there is none. Gives the keys that
 * are seen to: they are due early enough, or were made so. Those that it does not give are not there any more. The limit
 * keeps each key looked up by the index, whatever the database thinks of the size of the table.
 */
export const SOONER = `
  with wanted as (
    select key, now() + wait * interval '1 millisecond' as due_at
    from unnest($2::text[], $3::float8[]) as w (key, wait)
  ), found as (
    select j.id, w.key, w.due_at, j.has_at
    from wanted w cross join lateral (
      select id, case when state = 'active' then to_timestamp((data->>'again')::float8)
        else start_after end as has_at
      from ${SCHEMA}.job
      where name = $1 and coalesce(singleton_key, '') = w.key
        and state <= 'active' and policy = 'exclusive'
      limit 1
    ) j
  ), moved as (
    update ${SCHEMA}.job j set
      start_after = case when j.state = 'active' then j.start_after
        else least(j.start_after, f.due_at) end,
      data = case when j.state = 'active' then jsonb_set(j.data, '{again}', to_jsonb(
          least((j.data->>'again')::float8, extract(epoch from f.due_at)::float8)))
        else j.data end
    from found f
    where j.name = $1 and j.id = f.id and j.state <= 'active'
      and (f.has_at is null or f.has_at > f.due_at)
    returning f.key, j.state, j.start_after
  ), told as (
    select pg_notify($4, $1) from moved
    where $4 <> '' and state < 'active' and start_after <= now() limit 1
  )
  select key from found where has_at <= due_at
  union all
  select key from moved where (select count(*) from told) >= 0`

/**
 * $1 queue, $2 IDs, $3 attempts, $4 in how many ms they are due again, null for those that are done with, $5 the order
 * in which their runs ended: by it they stand behind one another, though one statement has one time. Gives the IDs
 * and attempts of the claims that held, and in how many ms they are due. One that was marked by another process in this very moment
 * is not given, though its claim holds: asked once more, it is.
 */
export const END = `
  with ended as (
    select id, attempt, wait, place
    from unnest($2::uuid[], $3::int[], $4::float8[], $5::int[]) as e (id, attempt, wait, place)
  ), gone as (
    delete from ${SCHEMA}.job j using ended e
    where j.name = $1 and j.id = e.id and j.state = 'active' and j.retry_count = e.attempt
      and e.wait is null and j.data->>'again' is null
    returning j.id, e.attempt
  ), back as (
    update ${SCHEMA}.job j set
      state = 'retry',
      start_after = least(now() + e.wait * interval '1 millisecond',
        to_timestamp((j.data->>'again')::float8)),
      keep_until = j.keep_until + (now() - j.start_after)
        + coalesce(e.wait, 0) * interval '1 millisecond',
      created_on = now() + e.place * interval '1 microsecond',
      heartbeat_on = null,
      data = j.data - 'again'
    from ended e
    where j.name = $1 and j.id = e.id and j.state = 'active' and j.retry_count = e.attempt
      and (e.wait is not null or j.data->>'again' is not null)
    returning j.id, e.attempt, extract(epoch from j.start_after - now())::float8 * 1000 as wait
  )
  select id, attempt, null::float8 as wait from gone
  union all
  select id, attempt, wait from back`
