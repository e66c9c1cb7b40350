-- First: a job that outlives what it calls would fail every minute.
do $$ begin perform idem.unschedule(); end $$;
