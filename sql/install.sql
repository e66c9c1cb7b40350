-- Installs pyidem into the current database in one transaction:
--
--     psql -X -q -f sql/install.sql
--
-- The role needs CREATE on the database and becomes the owner. This is the only manifest: its \ir lines, in this order,
-- are also what migrations/freeze.py reads.
\set ON_ERROR_STOP on

begin;

\ir preamble.sql
\ir schemas.sql

-- types
\ir types/reservation.sql
\ir types/response.sql
\ir types/lapsed_reservation.sql
\ir types/http_reservation.sql

-- tables
\ir tables/policy.sql
\ir tables/reservation.sql
\ir tables/unfinished.sql
\ir tables/event.sql
\ir tables/secret.sql
\ir tables/testing.sql
\ir tables/last_purge.sql
\ir tables/object.sql
\ir tables/access.sql
\ir tables/scope_binding.sql

-- private
\ir private/caller.sql
\ir private/is_distributed.sql
\ir private/bound_prefixes.sql
\ir private/is_within.sql
\ir private/check_scope.sql
\ir private/renew_scopes_bound.sql
\ir private/note_scopes_bound.sql
\ir private/testing_enabled.sql
\ir private/moved_clock.sql
\ir private/clock.sql
\ir private/single_transaction.sql
\ir private/commit_durably.sql
\ir private/exact_interval.sql
\ir private/check_interval.sql
\ir private/check_mode.sql
\ir private/key_fits.sql
\ir private/check_key.sql
\ir private/check_call.sql
\ir private/check_fields.sql
\ir private/headers_are_pairs.sql
\ir private/refuse_headers.sql
\ir private/keyed_hash.sql
\ir private/derive_key.sql
\ir private/lock_id.sql
\ir private/owned_here.sql
\ir private/real_expiry.sql
\ir private/finished_phase.sql
\ir private/phase.sql
\ir private/reader.sql
\ir private/is_lapsed.sql
\ir private/lapsed_at.sql
\ir private/policy_of.sql
\ir private/retry_after.sql
\ir private/mismatched_fields.sql
\ir private/answer.sql
\ir private/busy.sql
\ir private/begin_leased.sql
\ir private/note_leased.sql
\ir private/note_unchanged.sql
\ir private/require_completion.sql
\ir private/note_left_behind.sql
\ir private/judge.sql
\ir private/renew_lease.sql
\ir private/record_event.sql
\ir private/record_lapse.sql
\ir private/take_over.sql
\ir private/replace_expired.sql
\ir private/started.sql
\ir private/reserve_existing.sql
\ir private/mark_existing.sql
\ir private/require_fresh_snapshot.sql
\ir private/refuse_absent.sql
\ir private/refuse_owner_call.sql
\ir private/hold.sql
\ir private/free_key.sql
\ir private/back_off.sql
\ir private/may_claim.sql
\ir private/check_claim.sql
\ir private/lapsed_keys.sql
\ir private/claim.sql
\ir private/check_resolution.sql
\ir private/refuse_resolution.sql
\ir private/purge_events.sql
\ir private/forget_events.sql
\ir private/purge_scope.sql
\ir private/purge_events_of_nodes.sql
\ir private/short_hash.sql
\ir private/pointer_path.sql
\ir private/without_ignored.sql
\ir private/only_included.sql
\ir private/check_pointers.sql
\ir private/check_request.sql
\ir private/plain_json.sql
\ir private/read_json.sql
\ir private/canonical_json.sql
\ir private/json_fields.sql
\ir private/percent_decoded.sql
\ir private/read_form.sql
\ir private/part_head.sql
\ir private/read_multipart.sql
\ir private/part_pointers.sql
\ir private/part_fields.sql
\ir private/read_request.sql
\ir private/key_of_header.sql
\ir private/header_fits.sql
\ir private/http_problems.sql
\ir private/http_problem.sql
\ir private/replay_header.sql
\ir private/stored_headers.sql
\ir private/check_answer.sql
\ir private/refuse_policy.sql
\ir private/check_policy.sql
\ir private/check_whole_policy.sql
\ir private/retire_policy.sql
\ir private/revive_policy.sql
\ir private/write_policy.sql
\ir private/refuse_without_citus.sql
\ir private/rights.sql
\ir private/check_role.sql
\ir private/give_access.sql
\ir private/renew_access.sql
\ir private/granted_objects.sql
\ir private/note_purge.sql
\ir private/check_max_rows.sql
\ir private/cron_version.sql
\ir private/cron_period.sql
\ir private/purge_jobs.sql
\ir private/refuse_without_cron.sql
\ir private/trim_job_runs.sql
\ir private/purge_nodes.sql
\ir private/present_objects.sql
\ir private/record_objects.sql
\ir private/drift.sql
\ir private/unfinished_keys.sql
\ir private/table_size.sql
\ir private/health_of_installation.sql
\ir private/health_of_guards.sql
\ir private/health_of_settings.sql
\ir private/health_of_keys.sql
\ir private/health_of_purge.sql
\ir private/health_of_job.sql
\ir private/health_of_server.sql

-- core
\ir core/downstream_key.sql
\ir core/reserve.sql
\ir core/complete.sql
\ir core/release.sql
\ir core/defer.sql
\ir core/extend.sql
\ir core/checkpoint.sql
\ir core/lookup.sql
\ir core/json_response.sql
\ir core/run_begin.sql
\ir core/run_end.sql
\ir core/run.sql
\ir core/once.sql
\ir core/once_many.sql
\ir core/once_undo.sql

-- recovery
\ir recovery/claim_lapsed.sql
\ir recovery/resolve.sql
\ir recovery/history.sql
-- request
\ir request/fingerprint.sql
\ir request/fingerprint_fields.sql

-- http
\ir http/http_reserve.sql
\ir http/http_complete.sql
\ir http/policy_document.sql

-- operation
\ir operation/version.sql
\ir operation/enable_testing.sql
\ir operation/disable_testing.sql
\ir operation/grant_client.sql
\ir operation/grant_resolver.sql
\ir operation/grant_monitor.sql
\ir operation/grant_operator.sql
\ir operation/revoke_access.sql
\ir operation/bind_scope.sql
\ir operation/unbind_scope.sql
\ir operation/purge.sql
\ir operation/purge_all.sql
\ir operation/purge_state.sql
\ir operation/forget.sql
\ir operation/unschedule.sql
\ir operation/schedule.sql
\ir operation/health.sql
\ir operation/stats.sql
\ir operation/distribute.sql

-- views
\ir views/policies.sql
\ir views/keys.sql

-- data
\ir policies.sql

\ir stamp.sql

commit;
