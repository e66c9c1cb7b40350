create table orders (id int generated always as identity primary key, amount numeric not null);
